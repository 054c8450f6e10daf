import { createHash } from 'node:crypto'
import { assert } from '../../policy/assert.ts'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { flushFolder, replaceFile } from '../replace-file.ts'

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
type CopyRecord = z.infer<typeof CopyRecord>

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

/** A column of both databases. */
export interface Column {
  readonly name: string
  readonly type: 'bigint' | 'double precision' | 'text'
}

/** A table of both databases. */
export interface Table {
  readonly name: string
  readonly columns: readonly Column[]
  /**
   * Positions of the primary key in `columns`; of all columns if the table has no key. Rows are copied in this order.
   */
  readonly key: readonly number[]
}

/** Values of a row as texts that are the same for both databases; null for NULL. */
export type Row = readonly (string | null)[]

/** Converts a value of a driver. Both databases use this function, so equal values have equal texts. */
export function canonicalValue({ type }: Column, value: unknown): string | null {
  if (value === null) return null
  if (type === 'double precision') return String(Number(value))
  assert(typeof value === 'string' || typeof value === 'bigint', `a value of type ${type} is a ${typeof value}`)
  return String(value)
}

/** SHA-256 of a row. Lengths separate the values, so no two rows have the same input. */
function hashOf(row: Row): Buffer {
  const hash = createHash('sha256')
  for (const value of row) hash.update(value === null ? 'N' : `${Buffer.byteLength(value)}:${value}`)
  return hash.digest()
}

/** Approximate size of a row in memory, bytes. */
export function sizeOf(row: Row): number {
  return row.reduce((sum, value) => sum + (value?.length ?? 0), 0)
}

/** Orders rows by their key as both databases do: numbers by value, texts by their UTF-8 bytes. */
function compareKeys({ columns, key }: Table, a: Row, b: Row): number {
  for (const i of key) {
    const order = compareValues(columns[i]?.type, a[i] ?? null, b[i] ?? null)
    if (order !== 0) return order
  }
  return 0
}

function compareValues(type: Column['type'] | undefined, a: string | null, b: string | null): number {
  if (a === null || b === null) return Number(a !== null) - Number(b !== null)
  if (type === 'text') return Buffer.compare(Buffer.from(a), Buffer.from(b))
  const [left, right] = type === 'bigint' ? [BigInt(a), BigInt(b)] : [Number(a), Number(b)]
  return left < right ? -1 : Number(left > right)
}

/** The key of a row for messages, such as `product_id = prd_1`. */
export function keyText({ columns, key }: Table, row: Row): string {
  return key.map((i) => `${columns[i]?.name} = ${row[i]}`).join(', ')
}

/** Result of comparing one table. */
export interface ComparedTable {
  readonly name: string
  /** Number of rows in SQLite and in PostgreSQL. */
  readonly rows: number
  readonly copiedRows: number
  /** SHA-256 over the hashes of all rows, in the order of their keys. */
  readonly sha256: string
  readonly copiedSha256: string
  /** The first differences, for messages. */
  readonly differences: readonly string[]
}

const SHOWN_DIFFERENCES = 3

/**
 * Compares all rows of a table. Both sides are in the order of the key, so one pass finds missing rows, extra rows and
 * different rows.
 */
export async function compareTable(
  table: Table,
  source: Iterable<Row>,
  target: AsyncIterable<Row>,
  onRow: () => void,
): Promise<ComparedTable> {
  const [own, copied] = [createHash('sha256'), createHash('sha256')]
  let [rows, copiedRows] = [0, 0]
  const differences: string[] = []
  const differ = (what: string, row: Row) => {
    if (differences.length < SHOWN_DIFFERENCES) differences.push(`${what}: ${keyText(table, row)}`)
  }
  const left = source[Symbol.iterator]()
  const nextOwn = () => {
    const next = left.next()
    if (next.done === true) return undefined
    rows++
    onRow()
    return { row: next.value, hash: add(own, next.value) }
  }
  try {
    let mine = nextOwn()
    for await (const row of target) {
      copiedRows++
      const hash = add(copied, row)
      while (mine && compareKeys(table, mine.row, row) < 0) {
        differ('a row is missing', mine.row)
        mine = nextOwn()
      }
      if (!mine || compareKeys(table, mine.row, row) > 0) differ('a row is not in SQLite', row)
      else {
        if (!mine.hash.equals(hash)) differ('a row differs', row)
        mine = nextOwn()
      }
    }
    for (; mine; mine = nextOwn()) differ('a row is missing', mine.row)
  } finally {
    left.return?.()
  }
  const sums = { sha256: own.digest('hex'), copiedSha256: copied.digest('hex') }
  return { name: table.name, rows, copiedRows, ...sums, differences }
}

function add(sum: ReturnType<typeof createHash>, row: Row): Buffer {
  const hash = hashOf(row)
  sum.update(hash)
  return hash
}

/** True if both sides have the same rows. */
export function isSame({ rows, copiedRows, sha256, copiedSha256, differences }: ComparedTable): boolean {
  return rows === copiedRows && sha256 === copiedSha256 && differences.length === 0
}
