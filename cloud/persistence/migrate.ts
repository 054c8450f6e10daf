import { sql } from 'kysely'
import type { Db } from './database.ts'
import { BASELINE } from './migrations/0001-baseline.ts'
import type { Migration } from './migrations/migration.ts'

/** In order of application. Never change a released migration; add a new one. */
const MIGRATIONS: readonly Migration[] = [BASELINE]

/** Advisory lock of PostgreSQL that a migration holds. No other program on this database uses this number. */
const LOCK = 7_201_120

/** Applies missing migrations in one SQLite transaction, so that a power cut leaves the old schema or the new one. */
export async function migrateSqlite(db: Db): Promise<void> {
  await sql.raw('BEGIN IMMEDIATE').execute(db)
  try {
    await applyMissing(db, 'sqlite')
    await sql.raw('COMMIT').execute(db)
  } catch (error) {
    // The rollback fails if the failed commit has already ended the transaction. The caller needs the first error.
    await sql
      .raw('ROLLBACK')
      .execute(db)
      .catch(() => undefined)
    throw error
  }
}

/** Applies missing migrations in this PostgreSQL transaction. Other processes that migrate wait for its end. */
export async function migratePostgres(db: Db): Promise<void> {
  await sql.raw(`SELECT pg_advisory_xact_lock(${LOCK})`).execute(db)
  await applyMissing(db, 'postgres')
}

async function applyMissing(db: Db, dialect: 'sqlite' | 'postgres'): Promise<void> {
  await sql.raw('CREATE TABLE IF NOT EXISTS migration (name text PRIMARY KEY)').execute(db)
  const { rows } = await sql<{ name: string }>`SELECT name FROM migration`.execute(db)
  const applied = new Set(rows.map((r) => r.name))
  const unknown = [...applied].find((name) => !MIGRATIONS.some((m) => m.name === name))
  if (unknown)
    throw new Error(`the database was made by a newer untag (it has the migration "${unknown}"): upgrade untag`)
  for (const { name, statements } of MIGRATIONS) {
    if (applied.has(name)) continue
    for (const statement of statements)
      await sql.raw(dialect === 'sqlite' ? forSqlite(statement) : statement).execute(db)
    await sql`INSERT INTO migration (name) VALUES (${name})`.execute(db)
  }
}

/**
 * Converts portable SQL. In SQLite integers have 64 bits, texts sort by bytes, and WITHOUT ROWID clusters a table by
 * its key. SQLite has one writer, so each counter has one slot.
 */
function forSqlite(statement: string): string {
  const text = statement
    .replaceAll(/\bbigint\b/g, 'integer')
    .replaceAll('double precision', 'real')
    .replaceAll(' COLLATE "C"', '')
    .replaceAll('DEFAULT (pg_backend_pid() % 128)', 'DEFAULT 0')
  if (!/^\s*CREATE TABLE/.test(text)) return text
  return text.endsWith('/* clustered */') ? `${text} STRICT, WITHOUT ROWID` : `${text} STRICT`
}
