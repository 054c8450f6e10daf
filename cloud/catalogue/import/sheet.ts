/** What a spreadsheet is to the import, whatever kind of file it came in. */

export type Cell = string | number | boolean | Date | null

/** One row that is not empty. */
export interface SheetRow {
  /** As a spreadsheet counts: the first is 1. */
  row: number
  cells: readonly Cell[]
  /** Holds something behind the last column of the header: no cell may be where it was meant to be. */
  isOverfull?: boolean
}

export interface Sheet {
  rows: AsyncIterable<SheetRow>
  /** How the file was understood, where that may surprise. */
  warnings: readonly string[]
}

/** Products in one file. */
export const ROWS_LIMIT = 10_000
/** Columns that are looked at. */
export const COLUMNS_LIMIT = 100
/** Empty rows that are passed over before the file is refused. */
export const EMPTY_ROWS_LIMIT = 20_000

/** Rows that are taken before others have their turn. */
export const ROWS_AT_A_TIME = 100

/** Whether nobody wrote anything into the row. */
export function isEmptyRow(cells: readonly Cell[]): boolean {
  return cells.every((cell) => cell === null || cell === undefined || (typeof cell === 'string' && cell.trim() === ''))
}
