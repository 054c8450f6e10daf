import { createHash } from 'node:crypto'
import { compareKeys, hashOf, keyText, type Row, type Table } from './rows.ts'

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
