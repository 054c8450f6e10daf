import type { Db } from '../persistence/database.ts'
import type { RefundRow } from '../persistence/tables/payments.ts'
import type { PurchaseLineRow } from '../persistence/tables/purchases.ts'
import { iso, definedFields } from '../operations/fields.ts'
import type { ReadContext } from '../operations/operation.ts'
import { withinLines } from '../operations/within-lines.ts'
import { yieldToEventLoop } from '../operations/yield-to-event-loop.ts'
import { refundedCent, refundsOfMany, toRefundInCents } from '../purchases/present-refunds.ts'
import type { PriceReason } from '../purchases/schema.ts'
import { vatBreakdown } from '../purchases/vat.ts'
import { refundedByLine } from './line-refunds.ts'
import type { Sale } from './schema.ts'

/** Maximum number of purchases in memory. Their lines are limited, too (within-lines.ts). */
export const SALES_AT_ONCE = 100

interface Position {
  completedMs: number
  purchaseId: string
}

/** Paid purchases of these stores from `fromMs` to before `toMs`, in pages: store by store, the oldest first. */
export async function* readSales(
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
  const lines = new Map<string, PurchaseLineRow[]>(purchases.map((purchase) => [purchase.purchase_id, []]))
  if (purchases.length > 0) {
    const rows = await db
      .selectFrom('purchase_line')
      .selectAll()
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
  lines: readonly PurchaseLineRow[],
  refunds: readonly RefundRow[],
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

function toExportedRefund(refund: RefundRow): Sale['refunds'][number] {
  const { createdAt, completedAt, ...shown } = toRefundInCents(refund)
  return { ...shown, createdAt: iso(createdAt), ...(completedAt !== undefined && { completedAt: iso(completedAt) }) }
}
