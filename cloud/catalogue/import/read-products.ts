import { invalid } from '../../foundation/failure.ts'
import { checkRow, rowErrors, type RowErrors } from '../row-errors.ts'
import type { ProductInput } from '../schema.ts'
import { cellOf, readHeader } from './columns.ts'
import { readCsvSheet } from './csv-sheet.ts'
import { productOfRow } from './product-of-row.ts'
import { ROWS_LIMIT, type Sheet } from './sheet.ts'
import { readXlsxSheet } from './xlsx-sheet.ts'

/**
 * Reads a spreadsheet (.xlsx or .csv), finds the columns by its header, converts each row and validates it as a
 * product.
 */

const TOO_MANY_CELLS =
  'the row has more cells than the header: put values that contain the separator, such as 1,99, into quotation marks'

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
  errors: RowErrors
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
  return readCsvSheet(file)
}

/**
 * Reads a file with up to 10,000 products. Throws 400 if the whole file is unusable. An invalid row becomes a row
 * error.
 */
export async function readProducts(file: Buffer): Promise<ReadProducts> {
  const sheet = await readSheet(file)
  const read: ReadProducts = { rows: 0, products: [], errors: rowErrors(), warnings: [...sheet.warnings] }
  const rowOfEan = new Map<string, number>()
  let places: ReturnType<typeof readHeader> | undefined
  for await (const sheetRow of sheet.rows) {
    if (!places) {
      places = readHeader(sheetRow)
      continue
    }
    const { row, cells, isOverfull = false } = sheetRow
    const index = read.rows++
    if (read.rows > ROWS_LIMIT) throw invalid('file', `has over ${ROWS_LIMIT} rows: split the file`, 'too_many_rows')
    if (isOverfull) {
      const ean = cellOf(cells, places, 'ean')
      read.errors.add({
        index,
        row,
        ean: typeof ean === 'string' ? ean.slice(0, 40) : null,
        field: '',
        code: 'too_many_cells',
        message: TOO_MANY_CELLS,
      })
      continue
    }
    const product = checkRow(productOfRow(cells, places), { index, row }, read.errors)
    if (!product) continue
    const first = rowOfEan.get(product.ean)
    if (first === undefined) {
      rowOfEan.set(product.ean, row)
      read.products.push({ index, row, product })
    } else {
      read.errors.add({
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
  if (read.rows === 0) throw invalid('file', 'has a header but no products', 'empty_file')
  return read
}
