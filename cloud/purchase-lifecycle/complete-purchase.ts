import { originOf } from '../foundation/config.ts'
import { earnAutomatically, EARNING_EVENTS } from '../loyalty/earn-automatically.ts'
import { countCompleted } from '../analytics/count-purchases.ts'
import type { Tenant } from '../foundation/caller.ts'
import type { Call } from '../operations/operation.ts'
import type { UnitFacts } from '../../policy/receipts/receipt-claims.ts'
import type { Db } from '../persistence/database.ts'
import { prepared } from '../persistence/prepared.ts'
import type { ProtectedItemRow } from '../persistence/tables/protection.ts'
import type { PurchaseLineRow, PurchaseRow } from '../persistence/tables/purchases.ts'
import type { StoreRow } from '../persistence/tables/stores.ts'
import { retryEvidenceOfReceipt } from '../protection/receipt-home/retry-evidence-of-receipt.ts'
import { raiseException } from '../protection/records/exceptions.ts'
import { readItem, updateItem } from '../protection/items/item-queries.ts'
import { renumberItemsOf, notifyGates } from '../protection/items/item-sequence.ts'
import { itemFacts, lineFacts } from '../protection/authorize/item-facts.ts'
import { consumeStock } from '../stock/reserve.ts'
import { makeReceipt, type ReceiptUnit } from '../receipts/receipt-of-purchase.ts'
import { definedFields } from '../operations/fields.ts'
import { readLines, readUnits, updatePurchase } from '../purchases/queries.ts'

/**
 *   CREATED ─ approved ─▶ PENDING_PAYMENT ─ completePurchase ─▶ SUCCESS ─ all units released (protection/rights) ─▶ UNLOADED
 *      │                        │                                  │                                                 │
 *      └ cancelUnpaidPurchase ──┴──▶ CANCELLED ◀── cancelPurchase ─┴─────────────────────────────────────────────────┘
 *                                        └─ the refund failed ─▶ SUCCESS, refund_status failed
 *
 * States of a purchase (`purchase.status`). Each file of this folder makes one of these transitions, or records one in
 * the reports.
 */

/** Events that `completePurchase` emits. */
export const COMPLETION_EVENTS = ['checkout.completed', ...EARNING_EVENTS] as const

const bindUnit = prepared(
  (db, p: { lineId: string; unitNo: number; itemId: string | null; bound: number; receiptIndex: number | null }) =>
    db
      .updateTable('purchase_unit')
      .set({ item_id: p.itemId, bound: p.bound, receipt_index: p.receiptIndex })
      .where('line_id', '=', p.lineId)
      .where('unit_no', '=', p.unitNo),
)

/** Completes a paid purchase: marks items as paid, binds units to items, and signs the receipt. */
export async function completePurchase(call: Call, purchase: PurchaseRow, store: StoreRow): Promise<PurchaseRow> {
  const { db, nowMs, services } = call
  const allLines = await readLines(db, purchase.purchase_id)
  const lines = new Map(allLines.map((line) => [line.line_id, line]))
  const units: ReceiptUnit[] = []
  for (const unit of await readUnits(db, purchase.purchase_id)) {
    const line = lines.get(unit.line_id)
    if (!line) continue
    if (unit.item_id !== null) call.requireAlone()
    const item = await bindItem(call, purchase, unit.item_id, unit)
    units.push({ unit, line, item, facts: await receiptFacts(db, line, item) })
  }
  const keys = services.authority.keysOf(purchase.tenant as Tenant)
  const receipt = makeReceipt(purchase, store, units, nowMs, keys, originOf(services.config))
  for (const [n, { unit, item }] of units.entries()) {
    await bindUnit(db, {
      lineId: unit.line_id,
      unitNo: unit.unit_no,
      itemId: item?.item_id ?? null,
      bound: item ? 1 : 0,
      receiptIndex: receipt.indexes[n] ?? null,
    })
  }
  const completed = await updatePurchase(db, purchase, {
    status: 'SUCCESS',
    completed_ms: nowMs,
    cti: receipt.cti,
    receipt_token: receipt.token,
    receipt_exp: receipt.exp,
    security_tag_status: purchase.security_tag_mode === 'none' ? null : units.length > 0 ? 'pending' : 'deactivated',
  })
  await retryEvidenceOfReceipt(call, store.store_id, receipt.cti)
  // Renumbers all items of the checkout, because none of them is in payment any more. This includes items that another
  // purchase paid first.
  const hasItems = units.some(({ unit }) => unit.item_id !== null)
  if (hasItems && (await renumberItemsOf(db, purchase))) notifyGates(call, store.store_id)
  await countCompleted(call, completed, allLines)
  call.emit({
    type: 'checkout.completed',
    storeId: store.store_id,
    data: definedFields({
      transactionId: purchase.purchase_id,
      storeId: store.store_id,
      sessionId: purchase.session_id,
      userId: purchase.user_id,
      totalCent: purchase.total_cent,
      currency: purchase.currency,
      securityTagMode: purchase.security_tag_mode === 'none' ? null : purchase.security_tag_mode,
      securityTagStatus: completed.security_tag_status,
    }),
  })
  await consumeReservedStock(call, purchase)
  await earnAutomatically(call, store, {
    transactionId: purchase.purchase_id,
    userId: purchase.user_id,
    totalCent: purchase.total_cent,
    source: 'scan_and_go',
  })
  return completed
}

/** Facts about a unit that the protection policy uses. */
async function receiptFacts(db: Db, line: PurchaseLineRow, item: ProtectedItemRow | undefined): Promise<UnitFacts> {
  const { category = '', brand = '' } = item ? await itemFacts(db, item, line.price_cent) : lineFacts(line)
  return { category, brand, priceCent: line.price_cent }
}

/**
 * Subtracts the reserved stock. If the reservation lapsed and other baskets reserved the pieces meanwhile, raises an
 * exception, because the payment cannot be undone.
 */
async function consumeReservedStock({ db, nowMs, services }: Call, purchase: PurchaseRow): Promise<void> {
  const oversold = await consumeStock(db, purchase.purchase_id)
  if (oversold.length === 0) return
  await raiseException(
    { db, tenant: purchase.tenant, platform: services.platform, nowMs },
    {
      storeId: purchase.store_id,
      kind: 'stock_oversold',
      subject: purchase.purchase_id,
      purchaseId: purchase.purchase_id,
      detail: `paid after its stock reservation had expired; other orders had already reserved the last pieces of ${oversold.join(', ')}`,
    },
  )
}

/**
 * Makes a named item paid and binds it to the unit. If another purchase paid this item first, raises an exception and
 * leaves the unit unbound.
 */
async function bindItem(
  call: Call,
  purchase: PurchaseRow,
  itemId: string | null,
  unit: { line_id: string; unit_no: number },
): Promise<ProtectedItemRow | undefined> {
  if (itemId === null) return undefined
  const item = await readItem(call.db, itemId)
  const isHere = item.store_id === purchase.store_id
  if (isHere && item.item_status === 'sellable') {
    const change = {
      item_status: 'paid',
      purchase_id: purchase.purchase_id,
      line_id: unit.line_id,
      unit_no: unit.unit_no,
    }
    return updateItem(call.db, item, change, call.nowMs)
  }
  const scope = { db: call.db, tenant: purchase.tenant, platform: call.services.platform, nowMs: call.nowMs }
  await raiseException(scope, {
    storeId: purchase.store_id,
    kind: 'item_already_paid',
    subject: `${purchase.purchase_id}/${itemId}`,
    purchaseId: purchase.purchase_id,
    detail: `an item of this purchase was ${isHere ? item.item_status : 'in another store'} when it was paid`,
  })
  return undefined
}
