import { DatabaseUnavailable } from './database.ts'

/**
 * State of the storage. `full`: the disk is full, only reads work. `away`: the PostgreSQL server does not respond, or
 * accepts only reads.
 */
export type StorageState = 'available' | 'full' | 'away'

/** Called once for each change of the state. */
export type OnStorageState = (state: StorageState, cause?: unknown) => void

/** SQLite's code and PostgreSQL's `disk_full`. */
const DISK_FULL_CODES = new Set<unknown>(['SQLITE_FULL', '53100'])

/** True if a write failed because the disk is full. The write changed nothing. */
export function isDiskFull(error: unknown): boolean {
  return DISK_FULL_CODES.has((error as { code?: unknown } | null)?.code)
}

/**
 * True if the state of the storage caused the error. Callers need not log such an error, because the state is logged
 * once.
 */
export function isStorageError(error: unknown): boolean {
  return error instanceof DatabaseUnavailable || isDiskFull(error)
}

/** Returns a function that calls `onState` only if the state differs from the last state. */
export function stateReporter(onState: OnStorageState): (state: StorageState, cause?: unknown) => void {
  let last: StorageState = 'available'
  return (state, cause) => {
    if (state === last) return
    last = state
    onState(state, cause)
  }
}

/** Awaits a write and reports whether the disk had room for the write. */
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
