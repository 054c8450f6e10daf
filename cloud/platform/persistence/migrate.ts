import { sql } from 'kysely'
import type { Db } from './database.ts'
import { BASELINE } from './migrations/0001-baseline.ts'
import type { Migration } from './migrations/migration.ts'

/** In order of application. Never change a released migration; add a new one. */
const MIGRATIONS: readonly Migration[] = [BASELINE]

/**
 * Prefix of the name of a migration row that `untag database copy` adds until the copy is complete. Every version of
 * untag refuses a database with a migration that this version does not know.
 */
export const COPYING = 'copying:'

/** Advisory lock of PostgreSQL that a migration holds. No other program on this database uses this number. */
const LOCK = 7_201_120

/**
 * What happens if migrations are missing when a database is opened. `apply`: they are applied. `require`: opening
 * fails, because `untag migrate` must apply them.
 */
export type MigrationMode = 'apply' | 'require'

/** Migrations are missing, and this process must not apply them. */
class MigrationsMissing extends Error {
  override name = 'MigrationsMissing'
  constructor(missing: readonly string[]) {
    super(`the database lacks ${missing.map((name) => `"${name}"`).join(', ')}: run untag migrate first`)
  }
}

/**
 * Applies missing migrations with `migrate`, or throws. Returns their names. If no migration is missing, only reads the
 * database, so that the database user needs no right to create tables.
 */
export async function bringUpToDate(
  db: Db,
  dialect: 'sqlite' | 'postgres',
  mode: MigrationMode,
  migrate: () => Promise<void>,
): Promise<readonly string[]> {
  const missing = await missingMigrations(db, dialect)
  if (missing.length > 0 && mode === 'require') throw new MigrationsMissing(missing)
  if (missing.length > 0) await migrate()
  return missing
}

async function missingMigrations(db: Db, dialect: 'sqlite' | 'postgres'): Promise<readonly string[]> {
  const table =
    dialect === 'sqlite'
      ? sql<{ found: unknown }>`SELECT name AS found FROM sqlite_master WHERE type = 'table' AND name = 'migration'`
      : sql<{ found: unknown }>`SELECT to_regclass('migration') AS found`
  const isNew = ((await table.execute(db)).rows[0]?.found ?? null) === null
  const applied = isNew ? new Set<string>() : await appliedMigrations(db)
  return MIGRATIONS.map((m) => m.name).filter((name) => !applied.has(name))
}

/**
 * Names of the applied migrations. Throws if this version does not know one of them, or if the database is an
 * incomplete copy.
 */
async function appliedMigrations(db: Db): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ name: string }>`SELECT name FROM migration`.execute(db)
  const applied = new Set(rows.map((r) => r.name))
  if ([...applied].some((name) => name.startsWith(COPYING)))
    throw new Error('the database contains an incomplete copy: run untag database copy again')
  const unknown = [...applied].find((name) => !MIGRATIONS.some((m) => m.name === name))
  if (unknown)
    throw new Error(`the database was made by a newer untag (it has the migration "${unknown}"): upgrade untag`)
  return applied
}

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

/**
 * Applies missing migrations in this PostgreSQL transaction. Other processes that migrate wait for the end of this
 * transaction.
 */
export async function migratePostgres(db: Db): Promise<void> {
  await sql.raw(`SELECT pg_advisory_xact_lock(${LOCK})`).execute(db)
  await applyMissing(db, 'postgres')
}

async function applyMissing(db: Db, dialect: 'sqlite' | 'postgres'): Promise<void> {
  await sql.raw('CREATE TABLE IF NOT EXISTS migration (name text PRIMARY KEY)').execute(db)
  const applied = await appliedMigrations(db)
  for (const { name, statements } of MIGRATIONS) {
    if (applied.has(name)) continue
    for (const statement of dialect === 'sqlite' ? forSqlite(statements) : statements)
      await sql.raw(statement).execute(db)
    await sql`INSERT INTO migration (name) VALUES (${name})`.execute(db)
  }
}

/**
 * Converts portable SQL. In SQLite integers have 64 bits, texts sort by bytes, and WITHOUT ROWID clusters a table by
 * its key. SQLite has one writer, so each counter has one slot. It has no sequences (listing-numbers.ts).
 */
function forSqlite(statements: readonly string[]): string[] {
  return statements.filter((statement) => !statement.startsWith('CREATE SEQUENCE')).map(inSqlite)
}

function inSqlite(statement: string): string {
  const text = statement
    .replaceAll(/\bbigint\b/g, 'integer')
    .replaceAll('double precision', 'real')
    .replaceAll(' COLLATE "C"', '')
    .replaceAll('DEFAULT (pg_backend_pid() % 128)', 'DEFAULT 0')
  if (!/^\s*CREATE TABLE/.test(text)) return text
  return text.endsWith('/* clustered */') ? `${text} STRICT, WITHOUT ROWID` : `${text} STRICT`
}
