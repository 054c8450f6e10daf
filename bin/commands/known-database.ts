import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Database } from '../../cloud/persistence/database.ts'
import { openDatabase } from '../../cloud/persistence/open-database.ts'
import { lookAtPostgres } from '../backup/postgres-dump.ts'
import { isThere } from '../is-there.ts'
import { realPlatform } from '../platform.ts'

/** Where a cloud keeps its data. */
export interface Place {
  data: string
  databaseUrl: string | undefined
}

/** Works on the cloud's database, beside a running cloud or before there is one. */
export async function withDatabase<T>(
  { data, databaseUrl }: Place,
  work: (database: Database) => Promise<T>,
): Promise<T> {
  const file = join(data, 'cloud.db')
  const database = await openDatabase(
    databaseUrl === undefined ? { file } : { url: databaseUrl, clock: realPlatform().clock },
    (failure) => {
      throw failure
    },
  ).catch((error: unknown) => {
    throw (error as { code?: string }).code === 'SQLITE_NOTADB'
      ? new Error(`${file} is no database: name the folder of the cloud's data with --data`)
      : error
  })
  try {
    return await work(database)
  } finally {
    await database.close()
  }
}

/** As `withDatabase`, where there must be one already: looking makes none. */
export async function withKnownDatabase<T>(place: Place, work: (database: Database) => Promise<T>): Promise<T> {
  await assertKnownDatabase(place)
  return withDatabase(place, work)
}

/** Whether a cloud or a key was ever made there. */
export async function isKnownDatabase({ data, databaseUrl }: Place): Promise<boolean> {
  if (databaseUrl === undefined) return isThere(join(data, 'cloud.db'))
  return (await lookAtPostgres(databaseUrl)).tables.includes('installation')
}

/** Throws when there is no cloud's database. */
export async function assertKnownDatabase(place: Place): Promise<void> {
  if (await isKnownDatabase(place)) return
  if (place.databaseUrl !== undefined) throw new Error('there is no cloud in that database: check --database-url')
  throw new Error(
    `there is no ${join(place.data, 'cloud.db')}: name the folder with --data, or the database with --database-url${nearby(place.data, 'cloud', 'cloud.db')}`,
  )
}

/** Throws when the keys of the cloud are not in its folder: others would be of no use to it. */
export function assertOwnKeyFiles(data: string): void {
  const master = join(data, 'keys', 'master.key')
  if (!isThere(master))
    throw new Error(
      `there is no ${master}: name the folder of the cloud's data with --data${nearby(data, 'cloud', 'keys/master.key')}`,
    )
}

/** Throws where a new cloud would be made although there is one in `DATA/cloud`, as `untag start` has it: that one was meant. */
export function assertNoCloudBelow({ data, databaseUrl }: Place): void {
  const below = join(data, 'cloud')
  if (databaseUrl !== undefined || isThere(join(data, 'cloud.db')) || !existsSync(join(below, 'cloud.db'))) return
  throw new Error(
    `${data} holds no cloud, and ${below} does: choose it with --data ${below}, or another folder for a new one`,
  )
}

/** The agent or the cloud that may have been meant: in this folder, as `untag start` has it, or beside it. */
export function nearby(data: string, name: 'cloud' | 'edge', file: string): string {
  const found = [join(data, name), join(dirname(data), name)].find(
    (folder) => resolve(folder) !== resolve(data) && existsSync(join(folder, file)),
  )
  return found === undefined ? '' : ` (there is one in ${found}: --data ${found})`
}
