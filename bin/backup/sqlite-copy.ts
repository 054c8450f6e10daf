import Sqlite from 'better-sqlite3'
import { chmodSync } from 'node:fs'
import { flush } from './files.ts'

const PAGES_AT_ONCE = 500

/**
 * Copies a database as it is at one moment, beside a cloud that goes on writing. The reading transaction holds that moment still:
 * without it SQLite would begin anew whenever somebody writes, and with a busy shop never end.
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
  } finally {
    source.close()
  }
  chmodSync(to, 0o600)
  checkCopy(to)
  flush(to)
}

/** Looks at every page and index of a copy that nobody uses. Throws when one is not sound. */
export function checkCopy(file: string): void {
  const db = new Sqlite(file)
  try {
    // One file, with nothing of it in a log beside.
    db.pragma('journal_mode = DELETE')
    const found = db.pragma('integrity_check(1)', { simple: true })
    if (found !== 'ok') throw new Error(`${file} is not sound: ${String(found)}`)
  } finally {
    db.close()
  }
}
