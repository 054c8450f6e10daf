import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, inject } from 'vitest'
import { realPlatform } from '../../host/platform.ts'
import type { Database } from '../../cloud/platform/persistence/database.ts'
import { openDatabase } from '../../cloud/platform/persistence/open-database.ts'
import { suiteWith } from './extended.ts'
import { IS_FULL_SIZE } from './full-size.ts'

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
    writeFileSync(location.file, await migratedFile())
    const again = () => openDatabase(location, fail)
    return {
      database: await again(),
      location,
      again,
      remove: async () => rmSync(folder, { recursive: true, force: true }),
    }
  }
  const { url, remove } = await newMigratedPostgres()
  const again = () => openDatabase({ url, ...realPlatform() }, fail)
  return { database: await again(), location: { url }, again, remove }
}

let file: Promise<Buffer> | undefined

/** Content of a SQLite file with all tables. */
function migratedFile(): Promise<Buffer> {
  file ??= (async () => {
    const folder = temporaryFolder('cloud')
    const location = { file: join(folder, 'cloud.db') }
    await (await openDatabase(location, fail)).close()
    const content = readFileSync(location.file)
    rmSync(folder, { recursive: true })
    return content
  })()
  return file
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

/** A new database on the test run's PostgreSQL server, with all tables. */
export async function newMigratedPostgres(): Promise<{ url: string; remove(): Promise<void> }> {
  return newPostgresDatabase(await migratedTemplate())
}

/** A new database on the test run's PostgreSQL server: without tables, or a copy of `source`. */
export async function newPostgresDatabase(source = 'template1'): Promise<{ url: string; remove(): Promise<void> }> {
  const server = inject('postgresUrl')
  const name = `test_${randomBytes(6).toString('hex')}`
  // The default, `wal_log`, takes three times the processor time, and makes the later removal expensive, too.
  await asAdmin(server, `CREATE DATABASE ${name} TEMPLATE ${source} STRATEGY file_copy`)
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

/** Runs a suite on SQLite, and in the second tier on PostgreSQL. */
export function onEveryDatabase(name: string, suite: (kind: DatabaseKind) => void): void {
  describe(`${name} on SQLite`, () => suite('sqlite'))
  onPostgres(name, suite)
}

/**
 * Runs a suite on SQLite, and on PostgreSQL only in full size: for suites whose statements and races other suites run on
 * PostgreSQL in `.ci/run`.
 */
export function inFullSizeOnEveryDatabase(name: string, suite: (kind: DatabaseKind) => void): void {
  describe(`${name} on SQLite`, () => suite('sqlite'))
  if (IS_FULL_SIZE) onPostgres(name, suite)
}

function onPostgres(name: string, suite: (kind: DatabaseKind) => void): void {
  const has = inject('postgresUrl') !== ''
  suiteWith(has ? undefined : 'install the package postgresql', `${name} on PostgreSQL`, () => suite('postgres'))
}
