import type { Language } from '../../../policy/page-language.ts'
import { STORE_TIME_ZONE } from '../../../policy/store-time-zone.ts'
import { csvCell } from '../../shop/analytics/export-operations.ts'

/** A cell: text, a number, an amount, a time, or nothing. */
type CsvValue = string | number | { readonly cents: number } | { readonly ms: number } | undefined

/** Separators that Excel and LibreOffice of this language expect. */
const SEPARATORS = { en: { cell: ',', decimal: '.' }, de: { cell: ';', decimal: ',' } } as const

/** Without the mark, Excel reads the file in the character set of the machine. */
const BYTE_ORDER_MARK = '\uFEFF'

/** The Swedish format is ISO 8601, which spreadsheets of all languages read as a date. */
const time = new Intl.DateTimeFormat('sv-SE', { timeZone: STORE_TIME_ZONE, dateStyle: 'short', timeStyle: 'medium' })

/** A file that spreadsheets of the user's language open in columns, with times of the store's clock. */
export function csvFile(language: Language, rows: readonly (readonly CsvValue[])[]): string {
  const { cell, decimal } = SEPARATORS[language]
  const text = (value: CsvValue) => {
    if (value === undefined || typeof value === 'string') return csvCell(value)
    if (typeof value === 'number') return String(value).replace('.', decimal)
    return 'ms' in value ? csvCell(time.format(value.ms)) : (value.cents / 100).toFixed(2).replace('.', decimal)
  }
  return BYTE_ORDER_MARK + rows.map((row) => `${row.map(text).join(cell)}\r\n`).join('')
}
