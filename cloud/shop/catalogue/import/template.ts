import { FILE_FIELDS } from '../product-fields.ts'
import { COLUMNS, type Cell } from './sheet.ts'
import { writeXlsxSheet } from './xlsx-sheet.ts'

/** Example row of the template. */
const EXAMPLE: readonly Cell[] = [
  '4012345678901',
  'Hafermilch 1 l',
  1.99,
  7,
  ...FILE_FIELDS.map(({ example }) => example),
]

/** The template as CSV, with a byte order mark so that spreadsheet programs recognise UTF-8. */
export function csvTemplate(): string {
  const line = (cells: readonly Cell[]) =>
    cells
      .map((cell) => (/[",]/.test(String(cell)) ? `"${String(cell).replaceAll('"', '""')}"` : String(cell)))
      .join(',')
  return `\ufeff${line(COLUMNS)}\r\n${line(EXAMPLE)}\r\n`
}

/** The template as a workbook. The EAN is text, because spreadsheets show a number of 13 digits as 4.01E+12. */
export function xlsxTemplate(): Promise<Uint8Array> {
  return writeXlsxSheet('products', [COLUMNS, EXAMPLE])
}
