import { DatabaseUnavailable } from './database.ts'

/** What the storage below the database can do now: `full` still reads, `away` is a PostgreSQL server that does not answer. */
export type StorageState = 'available' | 'full' | 'away'

/** Called once for each change of the state, never twice for the same. */
export type OnStorageState = (state: StorageState, cause?: unknown) => void

/** SQLite's code and PostgreSQL's `disk_full`. */
const DISK_FULL_CODES = new Set<unknown>(['SQLITE_FULL', '53100'])

/** True if the write failed because there is no room. It changed nothing. */
export function isDiskFull(error: unknown): boolean {
  return DISK_FULL_CODES.has((error as { code?: unknown } | null)?.code)
}

/** True if the error only repeats the state of the storage, which is logged once. */
export function isStorageError(error: unknown): boolean {
  return error instanceof DatabaseUnavailable || isDiskFull(error)
}

/** Reports the state that results from each outcome to `onState`, if it is a new one. */
export function stateReporter(onState: OnStorageState): (state: StorageState, cause?: unknown) => void {
  let last: StorageState = 'available'
  return (state, cause) => {
    if (state === last) return
    last = state
    onState(state, cause)
  }
}

/** Runs a write and reports whether there was room for it. */
export async function reportDiskState<T>(note: OnStorageState, write: Promise<T>): Promise<T> {
  try {
    const result = await write
    note('available')
    return result
  } catch (error) {
    if (isDiskFull(error)) note('full', error)
    throw error
  }
}
