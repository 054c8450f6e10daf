import type { Database, StorageFailure } from './database.ts'
import type { OnAvailability } from './postgres-pool.ts'

/**
 * Opens `file` (SQLite) or a `postgres://` URL, brings the schema up to date and checks that commits are durable.
 * `onFailure`: the disk below SQLite cannot be trusted any more. `onAvailability`: the PostgreSQL server was lost, or answers again.
 */
export async function openDatabase(
  location: { file: string } | { url: string },
  onFailure: (failure: StorageFailure) => void,
  onAvailability: OnAvailability = () => undefined,
): Promise<Database> {
  if ('file' in location) {
    const { openSqlite } = await import('./sqlite.ts')
    return openSqlite(location.file, onFailure)
  }
  const { openPostgres } = await import('./postgres.ts')
  return openPostgres(location.url, onAvailability)
}
