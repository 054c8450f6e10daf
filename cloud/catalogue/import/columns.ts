import { Failure, invalid, type ErrorDetail } from '../../foundation/failure.ts'
import type { Cell, SheetRow } from './sheet.ts'

/** Columns of a product file, in the order of the template. */
export const COLUMNS = [
  'ean',
  'name',
  'price',
  'vat',
  'category',
  'unit',
  'brand',
  'description',
  'is_organic',
  'is_vegan',
  'deposit',
  'deposit_vat',
] as const
export type Column = (typeof COLUMNS)[number]

const REQUIRED: readonly Column[] = ['ean', 'name', 'price', 'vat']
const OTHER_NAMES: Readonly<Record<string, Column>> = {
  barcode: 'ean',
  isorganic: 'is_organic',
  isvegan: 'is_vegan',
  pfand: 'deposit',
  depositvat: 'deposit_vat',
}

/** Index of each column in the rows of a file. */
export type ColumnPlaces = ReadonlyMap<Column, number>

/**
 * Reads the header row. Columns may be in any order, and their names in upper or lower case. Throws 400 with up
 * to 20 unknown, missing and repeated columns.
 */
export function readHeader({ row, cells }: SheetRow): ColumnPlaces {
  const places = new Map<Column, number>()
  const faults: ErrorDetail[] = []
  for (const [at, cell] of cells.entries()) {
    const written = String(cell ?? '').trim()
    if (written === '') continue
    const column = columnOf(written)
    const shown = written.slice(0, 40)
    if (column === undefined)
      faults.push({ path: 'file', code: 'unknown_column', message: `unknown column "${shown}"` })
    else if (places.has(column))
      faults.push({ path: 'file', code: 'repeated_column', message: `the column "${shown}" occurs twice` })
    else places.set(column, at)
  }
  if (places.size === 0) {
    const found = faults.slice(0, 5).map((fault) => fault.message.replace('unknown column ', ''))
    throw invalid(
      'file',
      `has no header: row ${row} of the first sheet must name the columns ${COLUMNS.join(', ')}, but contains ` +
        `${found.join(', ')}`,
      'no_header',
    )
  }
  for (const column of REQUIRED) {
    if (!places.has(column))
      faults.push({ path: 'file', code: 'missing_column', message: `the column "${column}" is missing` })
  }
  if (faults.length === 0) return places
  const message = `${faults
    .slice(0, 5)
    .map((fault) => fault.message)
    .join('; ')}. Columns are ${COLUMNS.join(', ')}`
  throw new Failure('invalid-argument', `file: ${message}`, { details: faults.slice(0, 20) })
}

function columnOf(written: string): Column | undefined {
  const name = written.toLowerCase().replaceAll(/[\s-]+/g, '_')
  return COLUMNS.find((column) => column === name) ?? OTHER_NAMES[name]
}

/** Cell of a column; null if the cell is empty or the file does not have the column. */
export function cellOf(cells: readonly Cell[], places: ColumnPlaces, column: Column): Cell {
  const at = places.get(column)
  const cell = at === undefined ? null : (cells[at] ?? null)
  return typeof cell === 'string' ? cell.trim() || null : cell
}
