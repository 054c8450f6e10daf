import Sqlite from 'better-sqlite3'
import { accessSync, constants } from 'node:fs'
import { dirname } from 'node:path'
import { accessError } from './private-files.ts'

/** A lock of this process. The kernel releases it when the process ends, so it is never stale. */
interface DataDirLock {
  release(): void
}

/**
 * Locks a data folder for this process. If another process holds the lock, throws an error with `taken` as its text.
 */
export function lockDataDir(file: string, taken: string): DataDirLock {
  assertWritable(dirname(file))
  const db = new Sqlite(file, { timeout: 0 })
  try {
    db.pragma('locking_mode = EXCLUSIVE')
    db.exec('BEGIN EXCLUSIVE')
    return { release: () => db.close() }
  } catch (error) {
    db.close()
    throw (error as { code?: string }).code?.startsWith('SQLITE_BUSY') ? new Error(taken) : error
  }
}

/** Throws an error with the path, because SQLite's own error does not name the file. */
function assertWritable(folder: string): void {
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    throw accessError(folder, error)
  }
}
