import { z } from 'zod'
import { knownCaller, maySee, rolesFrom } from '../../platform/foundation/caller.ts'
import { invalid } from '../../platform/foundation/failure.ts'
import { Id, Success, iso, definedFields } from '../../platform/operations/fields.ts'
import { operation, type ReadContext } from '../../platform/operations/operation.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { listStores } from '../../platform/stores/queries.ts'
import { addDays, startOfDay } from './store-days.ts'
import { Day, Sale, SALE_COLUMNS } from './schema.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { withinLines } from '../../platform/operations/paging.ts'
import { yieldToEventLoop } from '../../platform/operations/job-steps.ts'
import { refundedCent, refundsOfMany, toRefundInCents, isRefunded } from '../purchases/refund-queries.ts'
import type { PriceReason } from '../purchases/schema.ts'
import {
  vatBreakdown,
  paidByLine,
  prorate,
  amountsOfPieces,
  piecesOf,
  sumPieces,
  type Pieces,
} from '../purchases/line-value.ts'
import { type CountedRefund, sharesOf, shareRefund } from './count-purchases.ts'

type Line = Pick<Row<'purchase_line'>, 'line_id' | 'price_cent' | 'quantity' | 'came_back' | 'vat'>

/**
 * Distributes refunds over lines, cents. Each refund is split by VAT rate, in the same way as in the closings. Each
 * part goes first to the pieces that the refund names. The rest goes to the other goods with the same VAT rate, in
 * proportion to their remaining amounts.
 *
 * The shares add up to the refunded amount of the purchase, and per VAT rate to the amounts in the closings.
 */
export function refundedByLine(lines: readonly Line[], refunds: readonly Row<'refund'>[]): Map<string, number> {
  const gone = new Map(lines.map((line) => [line.line_id, 0]))
  const paid = paidByLine(lines)
  const leftOf = (line: Line) => (paid.get(line.line_id) ?? 0) - (gone.get(line.line_id) ?? 0)
  /** Takes an amount from lines, in proportion to what is left of them, and at most `limits` of each. */
  const take = (cent: number, from: readonly Line[], limits?: ReadonlyMap<string, number>): number => {
    const lefts = from.map((line) => Math.min(leftOf(line), limits?.get(line.line_id) ?? Infinity))
    const taken = Math.min(
      cent,
      lefts.reduce((sum, each) => sum + each, 0),
    )
    for (const [i, part] of prorate(taken, lefts).entries()) {
      const line = from[i]
      if (line) gone.set(line.line_id, (gone.get(line.line_id) ?? 0) + part)
    }
    return cent - taken
  }
  const back: Pieces[] = []
  // Refunds that name pieces are distributed first.
  for (const refund of refunds
    .filter(isRefunded)
    .toSorted((a, b) => Number(a.lines === null) - Number(b.lines === null))) {
    const counted = refund.counted === null ? undefined : (JSON.parse(refund.counted) as CountedRefund)
    const pieces = counted?.pieces ?? piecesOf(refund)
    const named = new Map(
      amountsOfPieces(pieces, lines, paid, sumPieces(back)).map(({ lineId, cent }) => [lineId, cent]),
    )
    back.push(...pieces)
    for (const { rate, cent } of counted?.shares ?? sharesBy(refund, lines, leftOf, named)) {
      const ofRate = lines.filter((line) => line.vat === rate)
      take(
        take(
          cent,
          ofRate.filter((line) => named.has(line.line_id)),
          named,
        ),
        ofRate,
      )
    }
  }
  return gone
}

/** Splits a refund by VAT rate, with the same calculation as the closings. */
function sharesBy(
  refund: Row<'refund'>,
  lines: readonly Line[],
  leftOf: (line: Line) => number,
  named: ReadonlyMap<string, number>,
) {
  const amounts = (some: readonly Line[]) => sharesOf(some.map((line) => ({ cent: leftOf(line), rate: line.vat })))
  const own = lines.map((line) => ({ cent: named.get(line.line_id) ?? 0, rate: line.vat }))
  return shareRefund(amounts(lines), sharesOf(own), refund.amount_cent)
}

/** Maximum number of purchases in memory. Their lines are limited, too (platform/operations/paging.ts). */
const SALES_AT_ONCE = 100

/** Columns of a line that an export needs: the others take a third of its time. */
const LINE_COLUMNS = [
  'purchase_id',
  'line_id',
  'ean',
  'name',
  'quantity',
  'vat',
  'price_cent',
  'list_price_cent',
  'price_reason',
  'deposit_of',
  'came_back',
] as const
type ExportedLine = Pick<Row<'purchase_line'>, (typeof LINE_COLUMNS)[number]>

interface Position {
  completedMs: number
  purchaseId: string
}

/** Paid purchases of these stores from `fromMs` to before `toMs`, in pages: store by store, the oldest first. */
async function* readSales(
  reading: ReadContext,
  storeIds: readonly string[],
  fromMs: number,
  toMs: number,
): AsyncGenerator<Sale[]> {
  for (const storeId of storeIds) {
    let after: Position = { completedMs: fromMs, purchaseId: '' }
    for (;;) {
      const position = after
      const { sales, next } = await reading.read(({ db }) => readPage(db, storeId, position, toMs))
      if (sales.length > 0) yield sales
      if (!next) break
      after = next
      await yieldToEventLoop()
    }
  }
}

async function readPage(
  db: Db,
  storeId: string,
  { completedMs, purchaseId }: Position,
  toMs: number,
): Promise<{ sales: Sale[]; next: Position | undefined }> {
  const found = await db
    .selectFrom('purchase')
    .select(['purchase_id', 'store_id', 'status', 'currency', 'total_cent', 'completed_ms'])
    .where('store_id', '=', storeId)
    .where('completed_ms', '>=', completedMs)
    .where('completed_ms', '<', toMs)
    .where((eb) => eb.or([eb('completed_ms', '>', completedMs), eb('purchase_id', '>', purchaseId)]))
    .orderBy('completed_ms')
    .orderBy('purchase_id')
    .limit(SALES_AT_ONCE)
    .execute()
  const purchases = await withinLines(db, 'purchase_line', found)
  const lines = new Map<string, ExportedLine[]>(purchases.map((purchase) => [purchase.purchase_id, []]))
  if (purchases.length > 0) {
    const rows = await db
      .selectFrom('purchase_line')
      .select(LINE_COLUMNS)
      .where('purchase_id', 'in', [...lines.keys()])
      .orderBy('line_no')
      .execute()
    for (const row of rows) lines.get(row.purchase_id)?.push(row)
  }
  const refunds = await refundsOfMany(db, [...lines.keys()])
  const last = purchases.at(-1)
  return {
    sales: purchases.map((purchase) =>
      toSale(purchase, lines.get(purchase.purchase_id) ?? [], refunds.get(purchase.purchase_id) ?? []),
    ),
    next:
      (found.length === SALES_AT_ONCE || purchases.length < found.length) && last
        ? { completedMs: last.completed_ms ?? toMs, purchaseId: last.purchase_id }
        : undefined,
  }
}

function toSale(
  purchase: {
    purchase_id: string
    store_id: string
    status: string
    currency: string
    total_cent: number
    completed_ms: number | null
  },
  lines: readonly ExportedLine[],
  refunds: readonly Row<'refund'>[],
): Sale {
  const gone = refundedByLine(lines, refunds)
  return {
    transactionId: purchase.purchase_id,
    storeId: purchase.store_id,
    completedAt: iso(purchase.completed_ms ?? 0),
    status: purchase.status as Sale['status'],
    currency: purchase.currency,
    totalCent: purchase.total_cent,
    refundedCent: refundedCent(refunds),
    refunds: refunds.map(toExportedRefund),
    vatBreakdown: vatBreakdown(lines.map((line) => ({ cent: line.price_cent * line.quantity, rate: line.vat }))),
    items: lines.map((line) => ({
      itemLineId: line.line_id,
      ...definedFields({ ean: line.ean }),
      name: line.name,
      quantity: line.quantity,
      vat: line.vat,
      priceUnit: line.price_cent,
      ...definedFields({
        listPriceUnit: line.list_price_cent,
        priceReason: line.price_reason as PriceReason | null,
      }),
      totalCent: line.price_cent * line.quantity,
      refundedCent: gone.get(line.line_id) ?? 0,
      ...definedFields({ depositOf: line.deposit_of }),
    })),
  }
}

function toExportedRefund(refund: Row<'refund'>): Sale['refunds'][number] {
  const { createdAt, completedAt, ...shown } = toRefundInCents(refund)
  return { ...shown, createdAt: iso(createdAt), ...(completedAt !== undefined && { completedAt: iso(completedAt) }) }
}

/** Streams CSV with one row per purchase line: RFC 4180, comma, CRLF. */
async function* asCsv(pages: AsyncIterable<Sale[]>): AsyncGenerator<string> {
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

/** Characters that a cell may not contain as they are. */
const NEEDS_CARE = /["=+\-@＝＋－＠\t\r\n]/

/**
 * Formats a CSV cell. Each text is quoted. An apostrophe prevents a spreadsheet from running the text as a formula,
 * because product names may come from untrusted sources: at the start, and after `;` or a tab, where spreadsheets of
 * other countries may begin a cell.
 */
export function csvCell(value: string | number | undefined): string {
  if (value === undefined) return ''
  if (typeof value === 'number') return String(value)
  if (!NEEDS_CARE.test(value)) return `"${value}"`
  const harmless = value.replaceAll(/(^|[;\t\r\n])(?=\s*[=+\-@＝＋－＠\t\r\n])/g, "$1'")
  return `"${harmless.replaceAll('"', '""')}"`
}

/** Streams the response. If the final brace is missing, the response is incomplete. */
async function* asJson(pages: AsyncIterable<Sale[]>, head: Readonly<Record<string, string>>): AsyncGenerator<string> {
  let count = 0
  yield `${JSON.stringify({ success: true, ...head }).slice(0, -1)},"sales":[`
  for await (const sales of pages) {
    yield (count === 0 ? '' : ',') + sales.map((sale) => JSON.stringify(sale)).join(',')
    count += sales.length
  }
  yield `],"count":${count}}`
}

/** Stores per export. */
const STORES_LIMIT = 10_000

export const exportSalesData = operation({
  name: 'exportSalesData',
  area: 'analytics',
  minimumPackage: 'PRIME',
  roles: rolesFrom('manager'),
  summary: 'Exports all paid purchases between two dates as JSON or CSV.',
  description:
    'Both dates are inclusive. The stores follow one another, and each store’s oldest purchase comes first. The ' +
    'response is streamed and may be long. CSV has one row per purchase line. Amounts are in cents. Cancelled ' +
    'purchases are included with status CANCELLED. `refundedCent` is the amount refunded so far, per line and in ' +
    'total. The export contains no data of the shopper.',
  changes: false,
  mayBeStale: true,
  formats: [
    {
      format: 'csv',
      contentType: 'text/csv',
      description: `With \`format\` \`csv\`: RFC 4180 in UTF-8 with the columns ${SALE_COLUMNS.join(', ')}.`,
    },
  ],
  request: z.strictObject({
    from: Day,
    to: Day,
    storeId: Id.optional().describe('Default: all own stores.'),
    format: z.enum(['json', 'csv']).optional().describe('Default `json`.'),
  }),
  response: z.strictObject({ ...Success, from: z.string(), to: z.string(), sales: z.array(Sale), count: z.int() }),
  example: { from: '2026-11-01', to: '2026-11-30', format: 'csv' },
  async stream(reading, { from, to, storeId, format = 'json' }) {
    if (to < from) throw invalid('to', 'is before from')
    const caller = knownCaller(reading.caller)
    const storeIds = await reading.read(async (call) => {
      if (storeId !== undefined) return [(await ownStore(call, storeId)).store_id]
      const stores = await listStores(call.db, caller.tenant, STORES_LIMIT)
      return stores.filter((store) => maySee(caller, store)).map((store) => store.store_id)
    })
    const pages = readSales(reading, storeIds, startOfDay(from), startOfDay(addDays(to, 1)))
    const fileName = `sales-${from}-${to}.${format}`
    if (format === 'csv')
      return { contentType: 'text/csv; charset=utf-8; header=present', fileName, chunks: asCsv(pages) }
    return { contentType: 'application/json', chunks: asJson(pages, { from, to }) }
  },
})
