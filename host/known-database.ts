import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { KeyPlace } from '../cloud/platform/authority/key-files.ts'
import type { Database, Pooling, Db } from '../cloud/platform/persistence/database.ts'
import type { MigrationMode } from '../cloud/platform/persistence/migrate.ts'
import { openDatabase } from '../cloud/platform/persistence/open-database.ts'
import { inspectPostgres } from './backup/database-dump.ts'
import { assertNotCopied } from './database-copy/rows.ts'
import { nearby, pathExists } from './private-files.ts'
import { realPlatform } from './platform.ts'
import { findAccountId } from '../cloud/sales/registrations/registrations.ts'

/** Finds the id of an account by its name. Throws if there is none. */
export async function accountNamed(db: Db, name: string): Promise<string> {
  const accountId = await findAccountId(db, name)
  if (accountId === undefined)
    throw new Error(`there is no account "${name}": untag keys list shows the accounts that have keys`)
  return accountId
}

/** Data folder of a cloud, and its PostgreSQL database if it has one. */
export interface DatabaseLocation {
  data: string
  databaseUrl: string | undefined
  databasePooling?: Pooling
  /** Default: `apply`. */
  migrations?: MigrationMode
}

/**
 * Opens the cloud's database for `work`, even while the cloud runs. Creates a missing SQLite file. Throws if the SQLite
 * database was copied to PostgreSQL, unless `isForRestore`.
 */
export async function withDatabase<T>(
  { data, databaseUrl, databasePooling = 'session', migrations = 'apply' }: DatabaseLocation,
  work: (database: Database) => Promise<T>,
  isForRestore = false,
): Promise<T> {
  const file = join(data, 'cloud.db')
  if (!isForRestore) assertNotCopied({ data, databaseUrl })
  const database = await openDatabase(
    databaseUrl === undefined
      ? { file, migrations }
      : { url: databaseUrl, ...realPlatform(), pooling: databasePooling, migrations },
    (failure) => {
      throw failure
    },
  ).catch((error: unknown) => {
    throw (error as { code?: string }).code === 'SQLITE_NOTADB'
      ? new Error(`${file} is not a SQLite database: choose the folder of the cloud's data with --data`)
      : error
  })
  try {
    return await work(database)
  } finally {
    await database.close()
  }
}

/** Like `withDatabase`, but throws if there is no database. */
export async function withKnownDatabase<T>(
  place: DatabaseLocation,
  work: (database: Database) => Promise<T>,
): Promise<T> {
  await assertKnownDatabase(place)
  return withDatabase(place, work)
}

/** True if the database of a cloud exists. */
export async function isKnownDatabase({ data, databaseUrl }: DatabaseLocation): Promise<boolean> {
  if (databaseUrl === undefined) return pathExists(join(data, 'cloud.db'))
  return (await inspectPostgres(databaseUrl)).tables.includes('installation')
}

/** Throws if the database of a cloud does not exist. */
export async function assertKnownDatabase(place: DatabaseLocation): Promise<void> {
  if (await isKnownDatabase(place)) return
  if (place.databaseUrl !== undefined) throw new Error('the database contains no cloud: check --database-url')
  throw new Error(
    `${join(place.data, 'cloud.db')} does not exist: choose the folder with --data, or the database with --database-url${nearby(place.data, 'cloud', 'cloud.db')}`,
  )
}

/**
 * Throws if there is no master key. Otherwise a command would create a new master key, which cannot decrypt the
 * secrets.
 */
export function assertOwnKeyFiles({ master }: KeyPlace, data: string): void {
  if (!pathExists(master))
    throw new Error(
      `${master} does not exist: choose the folder of the cloud's data with --data${nearby(data, 'cloud', 'keys/master.key')}`,
    )
}

/**
 * Throws if `DATA` has no cloud but `DATA/cloud` has one, because the user would start a second cloud by mistake.
 * `untag start` creates such folders.
 */
export function assertNoCloudBelow({ data, databaseUrl }: DatabaseLocation): void {
  const below = join(data, 'cloud')
  if (databaseUrl !== undefined || pathExists(join(data, 'cloud.db')) || !existsSync(join(below, 'cloud.db'))) return
  throw new Error(
    `${data} contains no cloud, but ${below} does: use it with --data ${below}, or choose another folder for a new cloud`,
  )
}
