import { SALE_COLUMNS, type Sale } from './schema.ts'

/** Streams CSV with one row per purchase line: RFC 4180, comma, CRLF. */
export async function* asCsv(pages: AsyncIterable<Sale[]>): AsyncGenerator<string> {
  yield `${SALE_COLUMNS.join(',')}\r\n`
  for await (const sales of pages) yield sales.map(rowsOf).join('')
}

/** Lists the columns explicitly, because the function runs for millions of lines and must be fast. */
function rowsOf({ transactionId, storeId, completedAt, status, currency, items }: Sale): string {
  const head = `${transactionId},${storeId},${completedAt},${status},${csvCell(currency)}`
  return items
    .map(
      (i) =>
        `${head},${i.itemLineId},${csvCell(i.ean)},${csvCell(i.name)},${i.quantity},${i.vat},${i.priceUnit},${i.listPriceUnit ?? ''},${i.priceReason ?? ''},${i.totalCent},${i.depositOf ?? ''},${i.refundedCent}\r\n`,
    )
    .join('')
}

/**
 * Formats a CSV cell. Each text is quoted. An apostrophe prevents a spreadsheet from running the text as a formula,
 * because product names may come from untrusted sources: at the start, and after `;` or a tab, where spreadsheets of
 * other countries may begin a cell.
 */
export function csvCell(value: string | number | undefined): string {
  if (value === undefined) return ''
  if (typeof value === 'number') return String(value)
  const harmless = value.replaceAll(/(^|[;\t\r\n])(?=\s*[=+\-@＝＋－＠\t\r\n])/g, "$1'")
  return `"${harmless.replaceAll('"', '""')}"`
}

/** Streams the response. If the final brace is missing, the response is incomplete. */
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
