import { invalid } from '../../../platform/foundation/failure.ts'
import type { UploadJob } from '../../../platform/foundation/ports.ts'
import { checkRow, rowErrors, type RowError } from '../upsert-products.ts'
import { FILE_FIELDS } from '../product-fields.ts'
import type { ProductInput } from '../schema.ts'
import {
  cellOf,
  COLUMNS,
  readHeader,
  type ColumnPlaces,
  cellName,
  type Column,
  COLUMNS_LIMIT,
  ROWS_LIMIT,
  type RowFault,
  type Sheet,
  type SheetRow,
  EMPTY_ROWS_LIMIT,
  isEmptyRow,
  limitedRow,
  tooManyEmptyRows,
  type Cell,
} from './sheet.ts'
import { readXlsxSheet } from './xlsx-sheet.ts'

/**
 * Converts the cells of a row to the types of the API. Empty cells are omitted. Values that cannot be converted stay
 * unchanged, so that the validation of products reports them.
 */
function productOfRow(cells: readonly Cell[], places: ColumnPlaces): Record<string, unknown> {
  const cell = (column: Column) => cellOf(cells, places, column)
  const fields: Record<string, unknown> = {
    ean: asText(cell('ean')),
    name: asText(cell('name')),
    price: asPrice(cell('price')),
    vat: asVat(cell('vat')),
  }
  for (const { field, form, name } of FILE_FIELDS) fields[field] = CELLS[form](cell(name))
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
}

function asText(cell: Cell): string | null {
  if (cell === null) return null
  if (cell instanceof Date) return Number.isNaN(cell.getTime()) ? '' : cell.toISOString().slice(0, 10)
  // Spreadsheets store EANs as numbers. `toFixed` formats long numbers without an exponent.
  return typeof cell === 'number' && Number.isSafeInteger(cell) ? cell.toFixed(0) : String(cell)
}

/**
 * Accepts a decimal point or comma, a currency before or after, and thousands separators where both are written. Returns
 * other values unchanged, also `1.299`, which may be 1.30 or 1,299.
 */
export function asPrice(cell: Cell): unknown {
  if (typeof cell !== 'string') return cell
  const written = cell.replace(/^(?:€|EUR)|(?:€|EUR)$/gi, '').trim()
  if (/^-?\d+(?:[.,]\d+)?$/.test(written)) return Number(written.replace(',', '.'))
  if (/^-?\d{1,3}(?:\.\d{3})+,\d{1,2}$/.test(written)) return Number(written.replaceAll('.', '').replace(',', '.'))
  if (/^-?\d{1,3}(?:,\d{3})+\.\d{1,2}$/.test(written)) return Number(written.replaceAll(',', ''))
  return cell
}

/** Accepts 7 and 19, `7%`, `7,0`, and 0.07, which spreadsheets store for 7 %, each with the error of binary fractions. */
export function asVat(cell: Cell): unknown {
  const written = typeof cell === 'string' ? cell.replace(/%$/, '').trim().replace(',', '.') : cell
  const number = typeof written === 'string' && /^\d+(?:\.\d+)?$/.test(written) ? Number(written) : written
  if (typeof number !== 'number') return number
  const rate = Math.round(number * 1e9) / 1e9
  return rate === 0.07 || rate === 0.19 ? Math.round(rate * 100) : rate
}

const YES = new Set(['true', '1', 'yes', 'y', 'ja', 'j', 'x', 'wahr'])
const NO = new Set(['false', '0', 'no', 'n', 'nein', 'falsch', '-'])

function asFlag(cell: Cell): unknown {
  if (cell === null || typeof cell === 'boolean') return cell
  const written = String(cell).toLowerCase()
  if (YES.has(written)) return true
  return NO.has(written) ? false : cell
}

/** Values of cells by the form of the field. */
const CELLS = { text: asText, amount: asPrice, rate: asVat, flag: asFlag, json: asText }
const FORM_HINTS = {
  text: undefined,
  amount: 'write 0.25 or 0,25',
  rate: 'write 7 or 19',
  flag: 'write yes or no',
  json: undefined,
}
const HINTS: ReadonlyMap<Column, string | undefined> = new Map([
  ['name', 'write a name'],
  ['price', 'write 1.99 or 1,99'],
  ['vat', 'write 7 or 19'],
  ...FILE_FIELDS.map(({ form, name }) => [name, FORM_HINTS[form]] as const),
])
const PRICES: ReadonlySet<Column> = new Set([
  'price',
  ...FILE_FIELDS.flatMap(({ form, name }) => (form === 'amount' ? [name] : [])),
])

/** The message about a wrong cell: its name, its value, what is wrong, and what to write. `fault`: of the validation. */
function cellMessage(column: Column, { row, cells }: SheetRow, places: ColumnPlaces, fault: string): string {
  const cell = cellOf(cells, places, column)
  const place = `cell ${cellName(places, column, row) ?? row} (${column})`
  const wrong =
    cell === null
      ? 'is empty'
      : `contains "${shown(cell)}": ${whyWrong(column, cell) ?? fault.replace(/^"[^"]*" /, '')}`
  const hint = cell === null && column === 'ean' ? 'write its 8 or 13 digits' : HINTS.get(column)
  return `${place} ${wrong}${hint ? `; ${hint}` : ''}`
}

/** What went wrong in the spreadsheet; undefined if only the validation knows. */
function whyWrong(column: Column, cell: Cell): string | undefined {
  if (cell instanceof Date) return 'the spreadsheet made a date of it: format the column as text'
  if (typeof cell !== 'string') return undefined
  if (/^#[A-Z0-9/]+[!?]?$/.test(cell)) return 'this is the error of a formula'
  if (column !== 'description' && /[\r\n]/.test(cell))
    return 'this text has a line end; in a CSV file, a quotation mark may be missing'
  return PRICES.has(column) && typeof asPrice(cell) !== 'number' ? 'this is no price' : undefined
}

function shown(cell: NonNullable<Cell>): string {
  const text = cell instanceof Date ? String(asText(cell)) : String(cell)
  const line = text.replaceAll(/[\u0000-\u001f\u007f]+/g, ' ')
  return line.length > 40 ? `${line.slice(0, 40)}…` : line
}

/**
 * Reads comma-separated text as spreadsheet programs do, in several encodings and with any separator. A file of
 * 10,000 rows must not fail for one wrong quotation mark, which is an error of the whole file for a parser of RFC 4180.
 */

const SEPARATORS = [',', ';', '\t'] as const
/** Maximum characters per row. A valid row has fewer than 2,000. */
const ROW_LIMIT = 100_000

/** Rows of a CSV file. Throws 400 for a binary file. */
function readCsvSheet(file: Buffer): Sheet {
  const { text, warnings } = decode(file)
  const [named, separator] = /^"?sep=([^\r\n])"?[ \t]*(?:\r\n?|\n|$)/i.exec(text) ?? []
  const table = named === undefined ? text : text.slice(named.length)
  return { rows: rowsOf(table, separator ?? separatorOf(table)), warnings }
}

function decode(file: Buffer): { text: string; warnings: string[] } {
  const [a, b] = file
  if ((a === 0xff && b === 0xfe) || (a === 0xfe && b === 0xff)) {
    return { text: new TextDecoder(a === 0xff ? 'utf-16le' : 'utf-16be').decode(file), warnings: [] }
  }
  if (file.includes(0)) throw invalid('file', 'is neither an .xlsx workbook nor a CSV text', 'not_a_spreadsheet')
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(file), warnings: [] }
  } catch {
    const { name, characters } = isCodePage850(file) ? CODE_PAGE_850 : WINDOWS_1252
    return {
      text: file
        .toString('latin1')
        .replaceAll(/[\u0080-\u00ff]/g, (char) => characters[char.charCodeAt(0) - 0x80] ?? char),
      warnings: [`the file is not valid UTF-8, so it was read as ${name}: check the umlauts`],
    }
  }
}

/** Characters 0x80 to 0xff. `TextDecoder` of some Node versions decodes those of Windows-1252 as control characters. */
const WINDOWS_1252 = {
  name: 'Windows-1252',
  characters: '€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ',
}
/** What Excel writes as "CSV (MS-DOS)". */
const CODE_PAGE_850 = {
  name: 'code page 850 (MS-DOS)',
  characters:
    'ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤' +
    'ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u00ad±‗¾¶§÷¸°¨·¹³²■\u00a0',
}

/** Bytes that Windows-1252 does not define; 0x81 is ü of code page 850. */
const NOT_1252 = /[\u0081\u008d\u008f\u0090\u009d]/
/** ä, ö, Ä, Ö and Ü of code page 850 beside small letters, where Windows-1252 would have „, ”, Ž, ™ and š. */
const UMLAUTS_OF_850 = /[a-z][\u0084\u0094][a-z]|(?<![a-z])[\u008e\u0099\u009a][a-z]/
/** ä, ö, ü, ß, Ä, Ö and Ü of Windows-1252. */
const UMLAUTS_OF_1252 = /[\u00e4\u00f6\u00fc\u00df\u00c4\u00d6\u00dc]/

function isCodePage850(file: Buffer): boolean {
  const text = file.toString('latin1')
  return NOT_1252.test(text) || (UMLAUTS_OF_850.test(text) && !UMLAUTS_OF_1252.test(text))
}

/** The separator that occurs most often in the first line, outside of quotation marks. */
function separatorOf(text: string): string {
  const counts = new Map<string, number>(SEPARATORS.map((separator) => [separator, 0]))
  let isQuoted = false
  for (const char of text.slice(0, ROW_LIMIT)) {
    if (char === '"') isQuoted = !isQuoted
    else if (!isQuoted && (char === '\n' || char === '\r') && [...counts.values()].some((n) => n > 0)) break
    else if (!isQuoted) counts.set(char, (counts.get(char) ?? -Infinity) + 1)
  }
  return SEPARATORS.reduce((best, separator) =>
    (counts.get(separator) ?? 0) > (counts.get(best) ?? 0) ? separator : best,
  )
}

async function* rowsOf(text: string, separator: string): AsyncGenerator<SheetRow> {
  let row = 0
  let empty = 0
  let width: number | undefined
  for (const cells of records(text, separator)) {
    row++
    if (cells && isEmptyRow(cells)) {
      if (++empty > EMPTY_ROWS_LIMIT) throw tooManyEmptyRows()
      continue
    }
    width ??= cells?.length ?? 0
    // A decimal comma without quotation marks splits a cell in two, which shifts all cells after it.
    const isOverfull = cells && cells.length > width && !isEmptyRow(cells.slice(width))
    yield cells
      ? { ...limitedRow(row, cells), ...(isOverfull && { fault: 'too_many_cells' as const }) }
      : { row, cells: [], fault: 'too_long' }
  }
}

/** The cells of each row; undefined for a row that is too long. Any line end outside of quotation marks ends a row. */
function* records(text: string, separator: string): Generator<string[] | undefined> {
  const special = new RegExp(`[\\r\\n${separator.replace(/[\\\]^-]/, '\\$&')}]`, 'g')
  const placeOf = (pattern: RegExp, from: number) => {
    pattern.lastIndex = from
    return pattern.exec(text)?.index ?? text.length
  }
  let at = 0
  while (at < text.length) {
    const start = at
    const cells: string[] = []
    for (;;) {
      const quoted = text[at] === '"' ? quotedCell(text, at) : undefined
      const isQuoted = quoted && placeOf(special, quoted.end) === quoted.end
      const end = isQuoted ? quoted.end : placeOf(special, at)
      cells.push(unprotected(isQuoted ? quoted.cell : text.slice(at, end)))
      at = end
      if (text[at] !== separator || at - start > ROW_LIMIT) break
      at++
    }
    const isTooLong = at - start > ROW_LIMIT
    if (isTooLong) at = placeOf(/[\r\n]/g, at)
    yield isTooLong ? undefined : cells
    at += text.startsWith('\r\n', at) ? 2 : 1
  }
}

/** The cell in quotation marks that begins at `at`, and the place after it; undefined if the marks are not closed. */
function quotedCell(text: string, at: number): { cell: string; end: number } | undefined {
  const limit = at + ROW_LIMIT
  let from = at + 1
  let cell = ''
  for (;;) {
    const mark = text.indexOf('"', from)
    if (mark < 0 || mark > limit) return undefined
    cell += text.slice(from, mark)
    if (text[mark + 1] !== '"') return { cell, end: mark + 1 }
    cell += '"'
    from = mark + 2
  }
}

/** The text of `="…"`, with which programs protect long numbers from spreadsheets. */
const unprotected = (cell: string) => /^="([^"]*)"$/.exec(cell)?.[1] ?? cell

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
interface ReadProduct {
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
