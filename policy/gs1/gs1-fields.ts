import { isSerial } from './sgtin.ts'

/** Data of a GS1 code that names a unit of goods. */
export interface ScannedItem {
  readonly gtin14: string
  /** Batch or lot, application identifier 10. */
  readonly lot?: string
  /** Expiry date, application identifier 17: YYMMDD; the day 00 means the last of the month. */
  readonly expiry?: string
  /** Application identifier 21, as printed. */
  readonly serial?: string
}

/** Names of the data that untag uses, by application identifier. */
const USED: Readonly<Record<string, 'lot' | 'expiry' | 'serial'>> = { '10': 'lot', '17': 'expiry', '21': 'serial' }

/** Picks lot, expiry and serial out of the fields of a code. Leaves out values that GS1 does not allow. */
export function itemOf(gtin14: string, fields: ReadonlyMap<string, string>): ScannedItem {
  const item: { gtin14: string; lot?: string; expiry?: string; serial?: string } = { gtin14 }
  for (const [identifier, name] of Object.entries(USED)) {
    const value = fields.get(identifier)
    if (value !== undefined && (name === 'expiry' ? isGs1Date(value) : isSerial(value))) item[name] = value
  }
  return item
}

function isGs1Date(text: string): boolean {
  const [, month = '', day = ''] = /^\d\d(\d\d)(\d\d)$/.exec(text) ?? []
  return Number(month) >= 1 && Number(month) <= 12 && Number(day) <= 31
}

/**
 * The date `YYYY-MM-DD` of a GS1 date of six digits. `year`: the present year, which decides about the century (GS1
 * General Specifications §7.12). Undefined for a date that does not exist.
 */
export function isoDate(yymmdd: string, year: number): string | undefined {
  if (!isGs1Date(yymmdd)) return undefined
  const [short, month, day] = [0, 2, 4].map((at) => Number(yymmdd.slice(at, at + 2))) as [number, number, number]
  const ahead = short - (year % 100)
  const century = Math.floor(year / 100) + (ahead >= 51 ? -1 : ahead <= -50 ? 1 : 0)
  const full = century * 100 + short
  const last = new Date(Date.UTC(full, month, 0)).getUTCDate()
  if (day > last) return undefined
  return `${full}-${yymmdd.slice(2, 4)}-${String(day === 0 ? last : day).padStart(2, '0')}`
}
