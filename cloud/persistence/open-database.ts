import type { Database, StorageFailure } from './database.ts'

/** Opens `file` (SQLite) or a `postgres://` URL, brings the schema up to date and checks that commits are durable. */
export async function openDatabase(
  location: { file: string } | { url: string },
  onFailure: (failure: StorageFailure) => void,
): Promise<Database> {
  if ('file' in location) {
    const { openSqlite } = await import('./sqlite.ts')
    return openSqlite(location.file, onFailure)
  }
  const { openPostgres } = await import('./postgres.ts')
  return openPostgres(location.url)
}
