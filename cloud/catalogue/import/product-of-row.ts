import { cellOf, type ColumnPlaces } from './columns.ts'
import type { Cell } from './sheet.ts'

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
 * Accepts a decimal point or comma. Rejects thousands separators, because they are ambiguous. Returns other values
 * unchanged.
 */
export function asPrice(cell: Cell): unknown {
  if (typeof cell !== 'string') return cell
  const written = cell.replace(/\s*(?:€|EUR)$/i, '')
  return /^-?\d+(?:[.,]\d+)?$/.test(written) ? Number(written.replace(',', '.')) : cell
}

/** Accepts 7 and 19, `7%`, `7,0`, and 0.07, which spreadsheets store for 7 %. */
export function asVat(cell: Cell): unknown {
  const written = typeof cell === 'string' ? cell.replace(/\s*%$/, '').replace(',', '.') : cell
  const number = typeof written === 'string' && /^\d+(?:\.\d+)?$/.test(written) ? Number(written) : written
  if (number === 0.07) return 7
  return number === 0.19 ? 19 : number
}

const YES = new Set(['true', '1', 'yes', 'y', 'ja', 'j', 'x', 'wahr'])
const NO = new Set(['false', '0', 'no', 'n', 'nein', 'falsch', '-'])

function asFlag(cell: Cell): unknown {
  if (cell === null || typeof cell === 'boolean') return cell
  const written = String(cell).toLowerCase()
  if (YES.has(written)) return true
  return NO.has(written) ? false : cell
}
