import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from '../../cloud/persistence/database.ts'
import { openDatabase } from '../../cloud/persistence/open-database.ts'

/** Where a cloud keeps its data. */
export interface Place {
  data: string
  databaseUrl: string | undefined
}

/** Works on the cloud's database, beside a running cloud or before there is one. */
export async function withDatabase<T>({ data, databaseUrl }: Place, work: (database: Database) => Promise<T>): Promise<T> {
  const database = await openDatabase(databaseUrl === undefined ? { file: join(data, 'cloud.db') } : { url: databaseUrl }, (failure) => {
    throw failure
  })
  try {
    return await work(database)
  } finally {
    await database.close()
  }
}

/** As `withDatabase`, where there must be one already: looking makes none. */
export function withKnownDatabase<T>(place: Place, work: (database: Database) => Promise<T>): Promise<T> {
  const file = join(place.data, 'cloud.db')
  if (place.databaseUrl === undefined && !existsSync(file)) throw new Error(`there is no ${file}: name the folder with --data, or the database with --database-url`)
  return withDatabase(place, work)
}
