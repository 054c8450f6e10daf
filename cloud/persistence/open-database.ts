import type { Clock } from '../../policy/platform.ts'
import type { Database, StorageFailure } from './database.ts'
import type { OnStorageState } from './storage-state.ts'

/**
 * Opens `file` (SQLite) or a `postgres://` URL, applies missing migrations and checks that commits are durable.
 * Calls `onFailure` if the content of SQLite's disk is unknown, and `onState` for each change of the storage's state.
 */
export async function openDatabase(
  location: { file: string } | { url: string; clock: Pick<Clock, 'elapsed'> },
  onFailure: (failure: StorageFailure) => void,
  onState: OnStorageState = () => undefined,
): Promise<Database> {
  if ('file' in location) {
    const { openConnection, openSqlite } = await import('./sqlite.ts')
    return openSqlite(location.file, onFailure, openConnection, onState)
  }
  const { openPostgres } = await import('./postgres.ts')
  return openPostgres(location.url, onState, location.clock)
}
