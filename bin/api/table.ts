import { printable } from '../../policy/printable.ts'

type Row = Readonly<Record<string, unknown>>

/** Longest text of a cell, characters. */
const CELL_LIMIT = 40
/** Space between two columns, characters. */
const GAP = 2

/**
 * A list as a table that fits the width of the terminal, with the other facts of the answer below. Undefined if the
 * answer is no list: it has no array of objects, or several.
 */
export function tableOf(answer: unknown, width: number): string[] | undefined {
  if (!isRow(answer)) return undefined
  const lists = Object.entries(answer).filter(([, value]) => Array.isArray(value) && value.length > 0)
  const [name = '', rows] = lists[0] ?? []
  if (lists.length !== 1 || !Array.isArray(rows) || !rows.every(isRow)) return undefined
  const facts = Object.entries(answer).flatMap(([key, value]) => {
    const text = key === name || key === 'success' ? undefined : cellOf(value)
    return text === undefined ? [] : [`${key}: ${text}`]
  })
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  const filled = names.filter((column) => rows.some((row) => cellOf(row[column]) !== ''))
  const { shown, hidden } = fitting(byInterest(filled, rows), rows, width)
  return [
    ...linesOf(shown, rows),
    '',
    ...facts,
    ...(hidden.length === 0 ? [] : [`Add --json for everything, also ${hidden.join(', ')}.`]),
  ]
}

function isRow(value: unknown): value is Row {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The columns with the id first, then names, then what tells the rows apart, then what all rows have in common. */
function byInterest(columns: readonly string[], rows: readonly Row[]): string[] {
  const rankOf = (column: string, index: number) => {
    if (index === 0) return 0
    if (column === 'name' || rows.some((row) => isRow(row[column]))) return 1
    return rows.length === 1 || new Set(rows.map((row) => cellOf(row[column]))).size > 1 ? 2 : 3
  }
  return columns
    .map((column, index) => ({ column, rank: rankOf(column, index) }))
    .toSorted((a, b) => a.rank - b.rank)
    .map(({ column }) => column)
}

/** A value in one cell: of an object its name. Undefined for other objects and for lists. */
function cellOf(value: unknown): string | undefined {
  if (value === undefined || value === null) return ''
  if (isRow(value) && typeof value['name'] === 'string') return cellOf(value['name'])
  if (typeof value === 'object') return undefined
  const text = printable(String(value).replaceAll(/\s+/g, ' '))
  return text.length > CELL_LIMIT ? `${text.slice(0, CELL_LIMIT - 1)}…` : text
}

function widthOf(column: string, rows: readonly Row[]): number {
  return Math.max(column.length, ...rows.map((row) => (cellOf(row[column]) ?? '').length))
}

/** The columns that fit, in their order. The first one is always shown. Columns with objects or lists never are. */
function fitting(columns: readonly string[], rows: readonly Row[], width: number) {
  const shown: string[] = []
  const hidden: string[] = []
  let used = 0
  for (const column of columns) {
    const needed = widthOf(column, rows) + (shown.length === 0 ? 0 : GAP)
    const isPlain = rows.every((row) => cellOf(row[column]) !== undefined)
    if (isPlain && (shown.length === 0 || used + needed <= width)) {
      shown.push(column)
      used += needed
    } else hidden.push(column)
  }
  return { shown, hidden }
}

function linesOf(columns: readonly string[], rows: readonly Row[]): string[] {
  const widths = columns.map((column) => widthOf(column, rows))
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join(' '.repeat(GAP))
      .trimEnd()
  return [line(columns), ...rows.map((row) => line(columns.map((column) => cellOf(row[column]) ?? '')))]
}
