import { cellName, cellOf, type Column, type ColumnPlaces } from './columns.ts'
import type { Cell, SheetRow } from './sheet.ts'

/**
 * Converts the cells of a row to the types of the API. Empty cells are omitted. Values that cannot be converted stay
 * unchanged, so that the validation of products reports them.
 */
export function productOfRow(cells: readonly Cell[], places: ColumnPlaces): Record<string, unknown> {
  const cell = (column: Parameters<typeof cellOf>[2]) => cellOf(cells, places, column)
  const fields = {
    ean: asText(cell('ean')),
    name: asText(cell('name')),
    price: asPrice(cell('price')),
    vat: asVat(cell('vat')),
    category: asText(cell('category')),
    unit: asText(cell('unit')),
    brand: asText(cell('brand')),
    description: asText(cell('description')),
    isOrganic: asFlag(cell('is_organic')),
    isVegan: asFlag(cell('is_vegan')),
    deposit: asPrice(cell('deposit')),
    depositVat: asVat(cell('deposit_vat')),
  }
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
  const written = cell.replace(/^(?:€|EUR)\s*|\s*(?:€|EUR)$/gi, '')
  if (/^-?\d+(?:[.,]\d+)?$/.test(written)) return Number(written.replace(',', '.'))
  if (/^-?\d{1,3}(?:\.\d{3})+,\d{1,2}$/.test(written)) return Number(written.replaceAll('.', '').replace(',', '.'))
  if (/^-?\d{1,3}(?:,\d{3})+\.\d{1,2}$/.test(written)) return Number(written.replaceAll(',', ''))
  return cell
}

/** Accepts 7 and 19, `7%`, `7,0`, and 0.07, which spreadsheets store for 7 %, each with the error of binary fractions. */
export function asVat(cell: Cell): unknown {
  const written = typeof cell === 'string' ? cell.replace(/\s*%$/, '').replace(',', '.') : cell
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

const HINTS: Partial<Record<Column, string>> = {
  name: 'write a name',
  price: 'write 1.99 or 1,99',
  deposit: 'write 0.25 or 0,25',
  vat: 'write 7 or 19',
  deposit_vat: 'write 7 or 19',
  is_organic: 'write yes or no',
  is_vegan: 'write yes or no',
}

/** The message about a wrong cell: its name, its value, what is wrong, and what to write. `fault`: of the validation. */
export function cellMessage(column: Column, { row, cells }: SheetRow, places: ColumnPlaces, fault: string): string {
  const cell = cellOf(cells, places, column)
  const place = `cell ${cellName(places, column, row) ?? row} (${column})`
  const wrong =
    cell === null
      ? 'is empty'
      : `contains "${shown(cell)}": ${whyWrong(column, cell) ?? fault.replace(/^"[^"]*" /, '')}`
  const hint = cell === null && column === 'ean' ? 'write its 8 or 13 digits' : HINTS[column]
  return `${place} ${wrong}${hint ? `; ${hint}` : ''}`
}

/** What went wrong in the spreadsheet; undefined if only the validation knows. */
function whyWrong(column: Column, cell: Cell): string | undefined {
  if (cell instanceof Date) return 'the spreadsheet made a date of it: format the column as text'
  if (typeof cell !== 'string') return undefined
  if (/^#[A-Z0-9/]+[!?]?$/.test(cell)) return 'this is the error of a formula'
  if (column !== 'description' && /[\r\n]/.test(cell))
    return 'this text has a line end; in a CSV file, a quotation mark may be missing'
  const isPrice = column === 'price' || column === 'deposit'
  return isPrice && typeof asPrice(cell) !== 'number' ? 'this is no price' : undefined
}

function shown(cell: NonNullable<Cell>): string {
  const text = cell instanceof Date ? String(asText(cell)) : String(cell)
  const line = text.replaceAll(/[\u0000-\u001f\u007f]+/g, ' ')
  return line.length > 40 ? `${line.slice(0, 40)}…` : line
}
