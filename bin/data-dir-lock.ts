import Sqlite from 'better-sqlite3'

/** Held as long as the process lives; the kernel drops it with the process, so it is never stale. */
export interface DataDirLock {
  release(): void
}

/** Makes sure that one folder of data has one process; throws `taken` when another has it. */
export function lockDataDir(file: string, taken: string): DataDirLock {
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
