import { invalid, type Failure } from '../../../platform/foundation/failure.ts'

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
