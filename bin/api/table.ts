import { printable } from '../../policy/printable.ts'

type Row = Readonly<Record<string, unknown>>

/** Longest text of a cell, characters. */
const CELL_LIMIT = 40
/** Longest name of a product in a terminal below `WIDE` columns: the tag and the time have room beside it. */
const PRODUCT_LIMIT = 22
const WIDE = 120
/** Space between two columns, characters. */
const GAP = 2

/**
 * A list as a table that fits the width of the terminal, with the other facts of the answer below. Undefined if the
 * answer is no list: it has no array of objects, or several. Of an empty list, says so.
 */
export function tableOf(answer: unknown, width: number): string[] | undefined {
  if (!isRow(answer)) return undefined
  const arrays = Object.entries(answer).flatMap(([key, value]) => (Array.isArray(value) ? [{ key, value }] : []))
  const [list, ...others] = arrays
  // An object with an empty list is no list, such as a product without pictures.
  const isList = 'success' in answer && Object.keys(answer).every((key) => key === list?.key || LIST_FACTS.has(key))
  if (list && others.length === 0 && list.value.length === 0 && isList)
    return ['nothing found', '', `total: ${cellOf(answer['total'] ?? 0)}`]
  const lists = arrays.filter(({ value }) => value.length > 0)
  const { key: name = '', value } = lists[0] ?? {}
  if (lists.length !== 1 || !Array.isArray(value) || !value.every(isRow)) return undefined
  const rows = width < WIDE ? value.map(withShortProduct) : value
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

/** Facts beside the rows of a list. */
const LIST_FACTS: ReadonlySet<string> = new Set(['success', 'total', 'nextCursor'])

function isRow(value: unknown): value is Row {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function withShortProduct(row: Row): Row {
  const text = isRow(row['product']) ? (cellOf(row['product']) ?? '') : ''
  return text.length > PRODUCT_LIMIT ? { ...row, product: { name: `${text.slice(0, PRODUCT_LIMIT - 1)}…` } } : row
}

/** Columns that say which goods a row is about. In a list with products they come first, even before the id. */
const TAGS: ReadonlySet<string> = new Set(['epc', 'tagUid', 'tagId'])
/** Columns that people look for in the lists of events, and the money of sums. */
const TIMES: ReadonlySet<string> = new Set(['occurredAt', 'date', 'timestamp'])
const CAUSES: ReadonlySet<string> = new Set(['gate', 'reason', 'status', 'state', 'health'])
const SUMS: ReadonlySet<string> = new Set(['total', 'totalCent', 'salesCent', 'refundCent', 'receiptCount'])

/**
 * The columns with the goods or else the id first, then when, what and how much, then names, then what tells the rows apart, then what all
 * rows have in common.
 */
function byInterest(columns: readonly string[], rows: readonly Row[]): string[] {
  const isOfGoods = rows.some((row) => isRow(row['product']))
  const rankOf = (column: string, index: number) => {
    if (isOfGoods && column === 'product') return -2
    if (isOfGoods && TAGS.has(column)) return -1
    const isSame = rows.length > 1 && new Set(rows.map((row) => cellOf(row[column]))).size === 1
    // A narrow terminal rather shows when something happened to the goods.
    if (index === 0 && !isSame) return isOfGoods ? 2.5 : 0
    if (TIMES.has(column)) return 1
    if (CAUSES.has(column) || SUMS.has(column)) return 2
    // Which agent drives a device, and whether it works, is what a person looks for.
    if (column === 'agentId' && rows.some((row) => isRow(row['health']))) return 3
    if (column === 'name' || rows.some((row) => isRow(row[column]))) return 3
    return isSame ? 5 : 4
  }
  return columns
    .map((column, index) => ({ column, rank: rankOf(column, index) }))
    .toSorted((a, b) => a.rank - b.rank)
    .map(({ column }) => column)
}

/** Columns with EUR. In the facts beside a list, `total` is the number of rows. */
const EUROS: ReadonlySet<string> = new Set(['total', 'price', 'amount', 'recoveredValue', 'subtotal'])
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/

/** The time where the terminal is, with the name of its zone. */
function localTime(text: string): string {
  const fields = { dateStyle: 'short', timeStyle: 'medium' } as const
  const zone = new Intl.DateTimeFormat('en', { timeZoneName: 'short' }).formatToParts(new Date(text))
  const name = zone.find(({ type }) => type === 'timeZoneName')?.value ?? ''
  return `${new Intl.DateTimeFormat('sv', fields).format(new Date(text))} ${name}`
}

/** A value in the cell of a column. */
function cellIn(row: Row, column: string): string | undefined {
  const value = row[column]
  return typeof value === 'number' && EUROS.has(column) ? value.toFixed(2) : cellOf(value)
}

/** A value in one cell: of an object its name, or its state, as of `health`. Undefined for other objects and for lists. */
function cellOf(value: unknown): string | undefined {
  if (value === undefined || value === null) return ''
  if (isRow(value) && typeof value['name'] === 'string') return cellOf(value['name'])
  if (isRow(value) && typeof value['state'] === 'string') return cellOf(value['state'])
  if (typeof value === 'object') return undefined
  if (typeof value === 'string' && TIME.test(value) && !Number.isNaN(Date.parse(value))) return localTime(value)
  const text = printable(String(value).replaceAll(/\s+/g, ' '))
  return text.length > CELL_LIMIT ? `${text.slice(0, CELL_LIMIT - 1)}…` : text
}

function widthOf(column: string, rows: readonly Row[]): number {
  return Math.max(column.length, ...rows.map((row) => (cellIn(row, column) ?? '').length))
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
  return [line(columns), ...rows.map((row) => line(columns.map((column) => cellIn(row, column) ?? '')))]
}
