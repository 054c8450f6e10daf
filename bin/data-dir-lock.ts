import Sqlite from 'better-sqlite3'
import { accessSync, constants } from 'node:fs'
import { dirname } from 'node:path'
import { outOfReach } from './is-there.ts'

/** Held as long as the process lives; the kernel drops it with the process, so it is never stale. */
export interface DataDirLock {
  release(): void
}

/** Makes sure that one folder of data has one process; throws `taken` when another has it. */
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

/** SQLite would only say that it is unable to open a database file, and not which. */
function assertWritable(folder: string): void {
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    throw outOfReach(folder, error)
  }
}
