/** Common form of spreadsheets of all file types. */

export type Cell = string | number | boolean | Date | null

/** A row with at least one cell that is not empty. */
export interface SheetRow {
  /** Row number as spreadsheet programs show it; the first row is 1. */
  row: number
  cells: readonly Cell[]
  /** True if a cell to the right of the header's last column is not empty. The cells of the row may then be shifted. */
  isOverfull?: boolean
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

/** Rows that are read before the event loop may run other work. */
export const ROWS_AT_A_TIME = 100

/** True if all cells are empty or blank. */
export function isEmptyRow(cells: readonly Cell[]): boolean {
  return cells.every((cell) => cell === null || cell === undefined || (typeof cell === 'string' && cell.trim() === ''))
}
