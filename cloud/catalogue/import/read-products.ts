import { invalid } from '../../foundation/failure.ts'
import type { UploadJob } from '../../foundation/upload-reader.ts'
import { checkRow, rowErrors, type RowError } from '../row-errors.ts'
import type { ProductInput } from '../schema.ts'
import { cellOf, COLUMNS, readHeader, type ColumnPlaces } from './columns.ts'
import { readCsvSheet } from './csv-sheet.ts'
import { cellMessage, productOfRow } from './product-of-row.ts'
import { COLUMNS_LIMIT, ROWS_LIMIT, type RowFault, type Sheet, type SheetRow } from './sheet.ts'
import { readXlsxSheet } from './xlsx-sheet.ts'

/**
 * Reads a spreadsheet (.xlsx or .csv), finds the columns by its header, converts each row and validates it as a
 * product.
 */

const ROW_FAULTS: Readonly<Record<RowFault, string>> = {
  too_many_cells:
    'the row has more cells than the header: put values that contain the separator, such as 1,99, into quotation marks',
  too_many_columns: `the row has over ${COLUMNS_LIMIT} columns`,
  too_long: 'the row is far too long: a line end or a quotation mark may be missing',
}

/** A valid product with its position in the file. */
export interface ReadProduct {
  index: number
  row: number
  product: ProductInput & { ean: string }
}

export interface ReadProducts {
  /** Rows that are not empty, without the header. */
  rows: number
  products: ReadProduct[]
  /** The first errors, and the number of all. */
  errors: { listed: readonly RowError[]; total: number }
  warnings: string[]
}

/** Detects the kind of the file by its first bytes, because its name may be wrong. */
async function readSheet(file: Buffer): Promise<Sheet> {
  if (file.length === 0) throw invalid('file', 'is empty', 'empty_file')
  const magic = file.subarray(0, 4).toString('latin1')
  if (magic === 'PK\u0003\u0004' || magic === 'PK\u0005\u0006') return readXlsxSheet(file)
  if (magic === '\u00d0\u00cf\u0011\u00e0') {
    throw invalid('file', 'is an old .xls workbook or has a password: save it as .xlsx without a password', 'encrypted')
  }
  // Shops and ERP systems call web pages and XML tables .xls, because Excel opens them.
  if (/^(\u00ef\u00bb\u00bf)?\s*</.test(file.subarray(0, 100).toString('latin1'))) {
    throw invalid(
      'file',
      'is a web page or XML: open it in a spreadsheet program and save it as .xlsx',
      'not_a_spreadsheet',
    )
  }
  return readCsvSheet(file)
}

/**
 * Reads a file with up to 10,000 products. Throws 400 if the whole file is unusable. An invalid row becomes a row
 * error.
 */
export async function readProducts(file: Buffer): Promise<ReadProducts> {
  const sheet = await readSheet(file)
  const products: ReadProduct[] = []
  const errors = rowErrors()
  let rows = 0
  const rowOfEan = new Map<string, number>()
  let places: ReturnType<typeof readHeader> | undefined
  for await (const sheetRow of sheet.rows) {
    if (!places) {
      if (sheetRow.fault !== undefined) throw invalid('file', ROW_FAULTS[sheetRow.fault], sheetRow.fault)
      places = readHeader(sheetRow)
      continue
    }
    const { row, cells, fault } = sheetRow
    const index = rows++
    if (rows > ROWS_LIMIT) throw invalid('file', `has over ${ROWS_LIMIT} rows: split the file`, 'too_many_rows')
    if (fault !== undefined) {
      const ean = cellOf(cells, places, 'ean')
      errors.add({
        index,
        row,
        ean: typeof ean === 'string' ? ean.slice(0, 40) : null,
        field: '',
        code: fault,
        message: `row ${row}: ${ROW_FAULTS[fault]}`,
      })
      continue
    }
    const explain = messagesOf(sheetRow, places)
    const product = checkRow(productOfRow(cells, places), { index, row }, errors, explain)
    if (!product) continue
    const first = rowOfEan.get(product.ean)
    if (first === undefined) {
      rowOfEan.set(product.ean, row)
      products.push({ index, row, product })
    } else {
      errors.add({
        index,
        row,
        ean: product.ean,
        field: 'ean',
        code: 'repeated',
        message: `ean: row ${first} has the same EAN`,
      })
    }
  }
  if (!places) throw invalid('file', 'is empty: the first sheet has no rows', 'empty_file')
  if (rows === 0) throw invalid('file', 'has a header but no products', 'empty_file')
  return { rows, products, errors: { listed: errors.listed, total: errors.count() }, warnings: [...sheet.warnings] }
}

/** Words the errors of a row by its cells. */
const messagesOf =
  (row: SheetRow, places: ColumnPlaces) =>
  (field: string, message: string): string => {
    const column = COLUMNS.find((name) => name === field)
    const fault = message.replace(/^\w+(?:: | (?=is missing))/, '')
    return column ? cellMessage(column, row, places, fault) : message
  }

/** Reads a product file outside of the process that serves requests. */
export const READ_PRODUCTS: UploadJob<ReadProducts> = {
  name: 'read-products',
  work: (bytes) => readProducts(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)),
}
