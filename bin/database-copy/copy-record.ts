import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { flushFolder } from '../durable-folder.ts'
import { replaceFile } from '../replace-file.ts'

/**
 * Record in the data folder that its SQLite database is being copied, or was copied, to PostgreSQL. While the record
 * exists, no cloud and no command opens the SQLite database: after the copy each right must be used in one database
 * only.
 */
const CopyRecord = z.strictObject({
  /** Id of the copy, which PostgreSQL stores too. */
  copyId: z.string(),
  /** Server and database, without user and password. */
  target: z.string(),
  isComplete: z.boolean(),
})
export type CopyRecord = z.infer<typeof CopyRecord>

function recordFile(data: string): string {
  return join(data, 'copied.json')
}

/** Reads the record; undefined if no copy was started. */
export function readCopyRecord(data: string): CopyRecord | undefined {
  const file = recordFile(data)
  if (!existsSync(file)) return undefined
  return CopyRecord.parse(JSON.parse(readFileSync(file, 'utf8')))
}

/** Stores the record durably. */
export function writeCopyRecord(data: string, record: CopyRecord): void {
  replaceFile(recordFile(data), `${JSON.stringify(record)}\n`, 0o600)
}

/** Removes the record: the SQLite database may be used again. */
export function removeCopyRecord(data: string): void {
  if (!existsSync(recordFile(data))) return
  rmSync(recordFile(data))
  flushFolder(data)
}

/** Throws if the SQLite database of this folder is being copied, or was copied. */
export function assertNotCopied({ data, databaseUrl }: { data: string; databaseUrl: string | undefined }): void {
  const record = databaseUrl === undefined ? readCopyRecord(data) : undefined
  if (record === undefined) return
  throw new Error(
    record.isComplete
      ? `the database in ${data} was copied to ${record.target}: use that one with --database-url. To return to SQLite and lose what happened since, run untag restore --after`
      : `the database in ${data} is being copied to ${record.target}: run untag database copy again, or delete ${recordFile(data)} to give up the copy`,
  )
}
