import { streamXlsxRows, XlsxStreamWriter } from 'hucre/xlsx'
import { Failure, invalid } from '../../foundation/failure.ts'
import {
  EMPTY_ROWS_LIMIT,
  isEmptyRow,
  limitedRow,
  tooManyEmptyRows,
  type Cell,
  type Sheet,
  type SheetRow,
} from './sheet.ts'
import { rebuildWorkbook } from './workbook-archive.ts'

/** Wraps hucre, which reads and writes .xlsx files. */

/** Rows of the first sheet of a workbook. Throws 400 for files that are not workbooks or are unsafe to unpack. */
export function readXlsxSheet(file: Buffer): Sheet {
  return { rows: rowsOf(rebuildWorkbook(file)), warnings: [] }
}

async function* rowsOf(file: Buffer): AsyncGenerator<SheetRow> {
  let empty = 0
  try {
    for await (const { index, values } of streamXlsxRows(file, { sheet: 0 })) {
      if (!isEmptyRow(values)) yield limitedRow(index + 1, values)
      else if (++empty > EMPTY_ROWS_LIMIT) throw tooManyEmptyRows()
    }
  } catch (error) {
    if (error instanceof Failure) throw error
    throw invalid(
      'file',
      'cannot be read as an .xlsx workbook: open it in a spreadsheet program and save it again',
      'damaged',
    )
  }
}

/** Writes a workbook with one sheet. */
export async function writeXlsxSheet(name: string, rows: readonly (readonly Cell[])[]): Promise<Uint8Array> {
  const writer = new XlsxStreamWriter({ name })
  for (const row of rows) writer.addRow([...row])
  return writer.finish()
}
