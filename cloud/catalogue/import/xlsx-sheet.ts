import { streamXlsxRows, XlsxStreamWriter } from 'hucre/xlsx'
import { Failure, invalid } from '../../foundation/failure.ts'
import { yieldToEventLoop } from '../../operations/yield-to-event-loop.ts'
import {
  COLUMNS_LIMIT,
  EMPTY_ROWS_LIMIT,
  isEmptyRow,
  ROWS_AT_A_TIME,
  type Cell,
  type Sheet,
  type SheetRow,
} from './sheet.ts'
import { checkWorkbook } from './zip-preflight.ts'

/** Wraps hucre, which reads and writes .xlsx files. */

/** Rows of the first sheet of a workbook. Throws 400 for files that are not workbooks or are unsafe to unpack. */
export async function readXlsxSheet(file: Buffer): Promise<Sheet> {
  await checkWorkbook(file)
  return { rows: rowsOf(file), warnings: [] }
}

async function* rowsOf(file: Buffer): AsyncGenerator<SheetRow> {
  let [seen, empty] = [0, 0]
  try {
    for await (const { index, values } of streamXlsxRows(file, { sheet: 0 })) {
      if (++seen % ROWS_AT_A_TIME === 0) await yieldToEventLoop()
      if (isEmptyRow(values)) {
        if (++empty > EMPTY_ROWS_LIMIT)
          throw invalid('file', `has over ${EMPTY_ROWS_LIMIT} empty rows; delete them and try again`, 'too_many_rows')
        continue
      }
      if (values.length > COLUMNS_LIMIT && !isEmptyRow(values.slice(COLUMNS_LIMIT))) {
        throw invalid('file', `row ${index + 1} has over ${COLUMNS_LIMIT} columns`, 'too_many_columns')
      }
      yield { row: index + 1, cells: values.slice(0, COLUMNS_LIMIT) }
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
