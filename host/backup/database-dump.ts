import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { KeyNames } from '../../cloud/platform/authority/signing-keys.ts'
import { errorText } from '../output.ts'
import Sqlite from 'better-sqlite3'
import { chmodSync } from 'node:fs'
import { flush } from './files.ts'

/** Backup and restore of PostgreSQL with its own programs `pg_dump` and `pg_restore`. */

/** Writes a consistent dump of the database. */
export function dumpPostgres(url: string, file: string): Promise<void> {
  return runTool('pg_dump', url, ['--format=custom', '--no-owner', '--no-privileges', `--file=${file}`])
}

/** Throws if `pg_restore` of this machine cannot read the dump. */
export function checkDump(file: string): Promise<void> {
  return runTool('pg_restore', undefined, ['--list', file])
}

/** Restores a dump into an empty database, in one transaction. */
export function loadPostgres(url: string, file: string): Promise<void> {
  return runTool('pg_restore', url, ['--no-owner', '--no-privileges', '--single-transaction', '--exit-on-error', file])
}

async function runTool(
  tool: 'pg_dump' | 'pg_restore',
  url: string | undefined,
  args: readonly string[],
): Promise<void> {
  const { plain, password } = url === undefined ? {} : withoutPassword(url)
  // Every user of the machine can read arguments of processes, so the password goes into the environment.
  const child = spawn(tool, plain === undefined ? args : [...args, `--dbname=${plain}`], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...(password !== undefined && { PGPASSWORD: password }) },
  })
  let stderr = ''
  child.stderr.on('data', (chunk: Buffer) => void (stderr = (stderr + chunk.toString()).slice(-4_000)))
  const ended = once(child, 'close') as Promise<[number | null]>
  const code = await Promise.race([
    ended.then(([status]) => status),
    new Promise<Error>((resolve) => child.once('error', resolve)),
  ])
  if (code instanceof Error) {
    throw new Error(
      `${tool} is not on this machine: install PostgreSQL's client programs (package postgresql-client) in the server's version or newer. Or back up and restore with other tools, and then run untag restore --after`,
    )
  }
  if (code !== 0) throw new Error(`${tool} failed: ${stderr.trim()}`)
}

/** The URL without secrets. PostgreSQL's programs read the password from the environment, and no other secret. */
function withoutPassword(url: string): { plain: string; password: string | undefined } {
  const plain = new URL(url)
  if (plain.searchParams.has('sslpassword'))
    throw new Error(
      'the URL of the database has the parameter sslpassword, which every user of this machine could read meanwhile: use a key file without a passphrase that only this user can read',
    )
  const password = plain.searchParams.get('password') ?? decodeURIComponent(plain.password)
  plain.password = ''
  plain.searchParams.delete('password')
  return { plain: plain.href, password: password === '' ? undefined : password }
}

/** Counts the other connections to the database, and lists its tables. */
export async function inspectPostgres(url: string): Promise<{ others: number; tables: string[] }> {
  return asClient(url, async (query) => {
    const [row] = await query<{ n: number }>(
      'SELECT COUNT(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    )
    const tables = await query<{ name: string }>(
      'SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()',
    )
    return { others: row?.n ?? 0, tables: tables.map(({ name }) => name) }
  })
}

/** Names of the keys that a cloud needs to use this database. */
export async function keyNamesOf(url: string): Promise<KeyNames> {
  return asClient(url, async (query) => {
    const [root] = await query<{ value: string }>("SELECT value FROM installation WHERE name = 'root_kid'")
    const sealing = await query<{ name: string }>(
      "SELECT DISTINCT split_part(sealed, '.', 1) AS name FROM signing_key WHERE state = 'active' AND sealed LIKE '%.%' ORDER BY 1",
    )
    return { root: root?.value, sealing: sealing.map(({ name }) => name) }
  })
}

/** Drops the tables. */
export async function dropTables(url: string, tables: readonly string[]): Promise<void> {
  if (tables.length === 0) return
  const names = tables.map((name) => `"${name.replaceAll('"', '""')}"`).join(', ')
  await asClient(url, (query) => query(`DROP TABLE ${names} CASCADE`))
}

async function asClient<T>(url: string, work: (query: <R>(text: string) => Promise<R[]>) => Promise<T>): Promise<T> {
  const { default: pg } = await import('pg')
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
  await client.connect().catch((error: unknown) => {
    throw new Error(`the database cannot be reached: ${errorText(error)}; check --database-url`, { cause: error })
  })
  try {
    return await work(async <R>(text: string) => (await client.query(text)).rows as R[])
  } finally {
    await client.end()
  }
}

const PAGES_AT_ONCE = 500

/**
 * Copies a consistent snapshot of a database, even while a cloud writes to it. The read transaction pins the snapshot.
 * Without this transaction, SQLite restarts the copy after each write by another process, and might never finish.
 */
export async function copyDatabase(
  from: string,
  to: string,
  onProgress: (done: number, total: number) => void,
): Promise<void> {
  const source = new Sqlite(from, { readonly: true, timeout: 5_000 })
  try {
    source.exec('BEGIN')
    source.prepare('SELECT COUNT(*) FROM migration').get()
    await source.backup(to, {
      progress({ totalPages, remainingPages }) {
        onProgress(totalPages - remainingPages, totalPages)
        return PAGES_AT_ONCE
      },
    })
    // SQLite reports before each step, so that the end of the last step has no report.
    onProgress(1, 1)
  } finally {
    source.close()
  }
  chmodSync(to, 0o600)
  checkCopy(to)
  flush(to)
}

/** Checks every page and index of a copy that no process uses. Throws if a page or an index is damaged. */
export function checkCopy(file: string): void {
  const db = new Sqlite(file)
  try {
    // Merges the write-ahead log into the file.
    db.pragma('journal_mode = DELETE')
    const found = db.pragma('integrity_check(1)', { simple: true })
    if (found !== 'ok') throw new Error(`${file} is damaged (${String(found)}): use another backup`)
  } finally {
    db.close()
  }
}
