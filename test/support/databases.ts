import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, inject } from 'vitest'
import { realPlatform } from '../../bin/platform.ts'
import type { Database } from '../../cloud/persistence/database.ts'
import { openDatabase } from '../../cloud/persistence/open-database.ts'

/** An empty database of one kind. `again` opens a second connection to it. */
export interface TestDatabase {
  database: Database
  location: { file: string } | { url: string }
  again(): Promise<Database>
  remove(): Promise<void>
}

export type DatabaseKind = 'sqlite' | 'postgres'

const fail = (failure: Error) => {
  throw failure
}

/** Creates a temporary folder. The test must remove it. */
export function temporaryFolder(name: string): string {
  return mkdtempSync(join(tmpdir(), `untag-${name}-`))
}

export async function newDatabase(kind: DatabaseKind): Promise<TestDatabase> {
  if (kind === 'sqlite') {
    const folder = temporaryFolder('cloud')
    const location = { file: join(folder, 'cloud.db') }
    const again = () => openDatabase(location, fail)
    return {
      database: await again(),
      location,
      again,
      remove: async () => rmSync(folder, { recursive: true, force: true }),
    }
  }
  const { url, remove } = await newPostgresDatabase(await migratedTemplate())
  const again = () => openDatabase({ url, ...realPlatform() }, fail)
  return { database: await again(), location: { url }, again, remove }
}

let template: Promise<string> | undefined

/** Name of a database with all tables. Its copy takes a fifth of the processor time of the migrations. */
function migratedTemplate(): Promise<string> {
  template ??= newPostgresDatabase().then(async ({ url }) => {
    const database = await openDatabase({ url, ...realPlatform() }, fail)
    await database.close()
    return new URL(url).pathname.slice(1)
  })
  return template
}

/** A new database on the test run's PostgreSQL server: without tables, or a copy of `source`. */
export async function newPostgresDatabase(source = 'template1'): Promise<{ url: string; remove(): Promise<void> }> {
  const server = inject('postgresUrl')
  const name = `test_${randomBytes(6).toString('hex')}`
  await asAdmin(server, `CREATE DATABASE ${name} TEMPLATE ${source}`)
  const url = new URL(server)
  url.pathname = `/${name}`
  return { url: url.href, remove: () => asAdmin(server, `DROP DATABASE ${name} WITH (FORCE)`) }
}

/** Runs a statement on the server's own database. */
export async function asAdmin(server: string, statement: string): Promise<void> {
  const { default: pg } = await import('pg')
  const client = new pg.Client({ connectionString: server })
  await client.connect()
  await client.query(statement)
  await client.end()
}

/**
 * Runs a suite on SQLite and on PostgreSQL. Without PostgreSQL the title of the skipped suite names the missing
 * package.
 */
export function onEveryDatabase(name: string, suite: (kind: DatabaseKind) => void): void {
  describe(`${name} on SQLite`, () => suite('sqlite'))
  const has = inject('postgresUrl') !== ''
  describe.skipIf(!has)(`${name} on PostgreSQL${has ? '' : ' (skipped: install the package postgresql)'}`, () =>
    suite('postgres'),
  )
}
