import Sqlite from 'better-sqlite3'
import { chmodSync } from 'node:fs'
import { flush } from './files.ts'

const PAGES_AT_ONCE = 500

/**
 * Copies a consistent snapshot of a database, even while a cloud writes to it. The read transaction pins the snapshot.
 * Without this transaction, SQLite restarts the copy after each write by another process, and might never finish.
 */
export async function copyDatabase(
  from: string,
  to: string,
  onProgress: (done: number, total: number) => void,
): Promise<void> {
  const source = new Sqlite(from, { readonly: true, timeout: 5_000 })
  try {
    source.exec('BEGIN')
    source.prepare('SELECT COUNT(*) FROM migration').get()
    await source.backup(to, {
      progress({ totalPages, remainingPages }) {
        onProgress(totalPages - remainingPages, totalPages)
        return PAGES_AT_ONCE
      },
    })
    // SQLite reports before each step, so that the end of the last step has no report.
    onProgress(1, 1)
  } finally {
    source.close()
  }
  chmodSync(to, 0o600)
  checkCopy(to)
  flush(to)
}

/** Checks every page and index of a copy that no process uses. Throws if a page or an index is damaged. */
export function checkCopy(file: string): void {
  const db = new Sqlite(file)
  try {
    // Merges the write-ahead log into the file.
    db.pragma('journal_mode = DELETE')
    const found = db.pragma('integrity_check(1)', { simple: true })
    if (found !== 'ok') throw new Error(`${file} is damaged (${String(found)}): use another backup`)
  } finally {
    db.close()
  }
}
