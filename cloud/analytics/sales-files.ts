import { SALE_COLUMNS, type Sale } from './schema.ts'

/** One line a unit of sale: RFC 4180, comma, CRLF. */
export async function* asCsv(pages: AsyncIterable<Sale[]>): AsyncGenerator<string> {
  yield `${SALE_COLUMNS.join(',')}\r\n`
  for await (const sales of pages) yield sales.map(rowsOf).join('')
}

/** One row a line. In the order of the columns, written out: this runs a million times. */
function rowsOf({ transactionId, storeId, completedAt, status, currency, items }: Sale): string {
  const head = `${transactionId},${storeId},${completedAt},${status},${csvCell(currency)}`
  return items
    .map(
      (i) =>
        `${head},${i.itemLineId},${csvCell(i.ean)},${csvCell(i.name)},${i.quantity},${i.vat},${i.priceUnit},${i.totalCent},${i.depositOf ?? ''},${i.refundedCent}\r\n`,
    )
    .join('')
}

/**
 * A cell of a CSV file. Text that a spreadsheet would take for a formula is made text by an apostrophe: product names come from
 * whoever sent them in.
 */
export function csvCell(value: string | number | undefined): string {
  if (value === undefined) return ''
  if (typeof value === 'number') return String(value)
  const harmless = /^\s*[=+\-@\t\r\n]/.test(value) ? `'${value}` : value
  return /[",\r\n']/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}

/** The answer's JSON, sale by sale: whole only when its last brace has come. */
export async function* asJson(
  pages: AsyncIterable<Sale[]>,
  head: Readonly<Record<string, string>>,
): AsyncGenerator<string> {
  let count = 0
  yield `${JSON.stringify({ success: true, ...head }).slice(0, -1)},"sales":[`
  for await (const sales of pages) {
    yield (count === 0 ? '' : ',') + sales.map((sale) => JSON.stringify(sale)).join(',')
    count += sales.length
  }
  yield `],"count":${count}}`
}
