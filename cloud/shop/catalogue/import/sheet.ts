import { invalid, Failure, type ErrorDetail } from '../../../platform/foundation/failure.ts'
import { FILE_FIELDS } from '../product-fields.ts'

/** Common form of spreadsheets of all file types. */

export type Cell = string | number | boolean | Date | null

/** Why no cell of a row can be trusted. */
export type RowFault = 'too_many_cells' | 'too_many_columns' | 'too_long'

/** A row with at least one cell that is not empty. */
export interface SheetRow {
  /** Row number as spreadsheet programs show it; the first row is 1. */
  row: number
  cells: readonly Cell[]
  fault?: RowFault
}

export interface Sheet {
  rows: AsyncIterable<SheetRow>
  /** Notes about how the file was decoded. */
  warnings: readonly string[]
}

/** Maximum number of products per file. */
export const ROWS_LIMIT = 10_000
/** Maximum number of columns that are read. */
export const COLUMNS_LIMIT = 100
/** Maximum number of empty rows; a file with more is rejected. */
export const EMPTY_ROWS_LIMIT = 20_000

/** True if all cells are empty or blank. */
export function isEmptyRow(cells: readonly Cell[]): boolean {
  return cells.every((cell) => cell === null || cell === undefined || (typeof cell === 'string' && cell.trim() === ''))
}

/** The row, with a fault if it has cells beyond the limit of columns. */
export function limitedRow(row: number, cells: readonly Cell[]): SheetRow {
  const isTooWide = cells.length > COLUMNS_LIMIT && !isEmptyRow(cells.slice(COLUMNS_LIMIT))
  return { row, cells: cells.slice(0, COLUMNS_LIMIT), ...(isTooWide && { fault: 'too_many_columns' }) }
}

/** The refusal of a file with over `EMPTY_ROWS_LIMIT` empty rows. */
export function tooManyEmptyRows(): Failure {
  return invalid('file', `has over ${EMPTY_ROWS_LIMIT} empty rows; delete them and try again`, 'too_many_rows')
}

/** Fields that each product has, with other names of their columns. A price without VAT has none: it would be wrong. */
const REQUIRED = {
  ean: ['barcode', 'gtin', 'eancode', 'eannummer', 'strichcode'],
  name: ['bezeichnung', 'artikel', 'artikelname', 'artikelbezeichnung', 'produkt', 'produktname', 'produktbezeichnung'],
  price: ['preis', 'bruttopreis', 'preisbrutto', 'vk', 'vkpreis', 'vkbrutto', 'verkaufspreis', 'ladenpreis'],
  vat: ['mwst', 'mwstsatz', 'ust', 'ustsatz', 'mehrwertsteuer', 'mehrwertsteuersatz', 'umsatzsteuer', 'steuersatz'],
}

/** Name of a column of a product file. */
export type Column = string
/** Columns of a product file, in the order of the template, with their other names in the form of `plainName`. */
const NAMES: ReadonlyMap<Column, readonly string[]> = new Map([
  ...Object.entries(REQUIRED),
  ...FILE_FIELDS.map(({ name, others }) => [name, others] as const),
])
export const COLUMNS: readonly Column[] = [...NAMES.keys()]

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
  for (const column of Object.keys(REQUIRED)) {
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
  const name = plainName(written)
  return COLUMNS.find((column) => plainName(column) === name || NAMES.get(column)?.includes(name))
}

/** The name without case, separators, currency and percent sign. */
function plainName(written: string): string {
  return written.toLowerCase().replaceAll(/\b(?:in )?(?:eur|euro)\b|(?:\bin )?[€%]|[\s._()[\]-]/g, '')
}

/** Name of a cell as spreadsheet programs show it, such as `C7`; undefined if the file does not have the column. */
export function cellName(places: ColumnPlaces, column: Column, row: number): string | undefined {
  const at = places.get(column)
  if (at === undefined) return undefined
  const letter = (index: number) => String.fromCharCode('A'.charCodeAt(0) + index)
  return `${at < 26 ? '' : letter(Math.floor(at / 26) - 1)}${letter(at % 26)}${row}`
}

/** Cell of a column; null if the cell is empty or the file does not have the column. */
export function cellOf(cells: readonly Cell[], places: ColumnPlaces, column: Column): Cell {
  const at = places.get(column)
  const cell = at === undefined ? null : (cells[at] ?? null)
  return typeof cell === 'string' ? cell.trim() || null : cell
}
