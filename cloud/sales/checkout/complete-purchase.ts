import { originOf } from '../../platform/foundation/config.ts'
import { earnAutomatically, EARNING_EVENTS } from '../../shop/loyalty/ledger.ts'
import { countCompleted } from '../../shop/analytics/count-purchases.ts'
import type { Tenant } from '../../platform/foundation/caller.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { insertChunks, preparedInsert } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { retryEvidenceOfReceipt } from '../../protection/receipt-home/receipt-rights.ts'
import { raiseException } from '../../protection/records/exceptions.ts'
import { readItems, updateStatuses, type StatusChange } from '../../protection/items/item-queries.ts'
import { renumberItemsOf, notifyGates } from '../../protection/items/item-sequence.ts'
import { stopRecalledUnits } from '../../protection/recalls/recalled-receipts.ts'
import { policyOf } from '../../platform/stores/parsed-policy.ts'
import { factsOfItem, lineFacts, productsOfItems } from '../../protection/authorize/item-facts.ts'
import { consumeStock } from '../../shop/stock/reserve.ts'
import { makeReceipt, type ReceiptUnit } from '../../shop/receipts/receipt-of-purchase.ts'
import { definedFields } from '../../platform/operations/fields.ts'
import { valueOf } from '../../shop/purchases/line-value.ts'
import { readLines, readUnits, updatePurchase } from '../../shop/purchases/queries.ts'
import { whyUnsaleable } from './book-refund.ts'

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

/** Writes which items units are bound to. */
export const bindUnits = preparedInsert((db, rows: readonly Row<'purchase_unit'>[]) =>
  db
    .insertInto('purchase_unit')
    .values(rows)
    .onConflict((c) =>
      c.columns(['line_id', 'unit_no']).doUpdateSet((eb) => ({
        item_id: eb.ref('excluded.item_id'),
        bound: eb.ref('excluded.bound'),
        receipt_index: eb.ref('excluded.receipt_index'),
      })),
    ),
)

/**
 * Completes a paid purchase: marks items as paid, binds units to items, and signs the receipt. `soldMs`: the time from
 * which the receipt is valid.
 */
export async function completePurchase(
  call: Call,
  purchase: Row<'purchase'>,
  store: Row<'store'>,
  soldMs: number = call.nowMs,
): Promise<Row<'purchase'>> {
  const { db, nowMs, services } = call
  const allLines = await readLines(db, purchase.purchase_id)
  const lines = new Map(allLines.map((line) => [line.line_id, line]))
  const tagged = await readUnits(db, purchase.purchase_id)
  const items = await readItems(
    db,
    tagged.flatMap((unit) => unit.item_id ?? []),
  )
  if (tagged.some((unit) => unit.item_id !== null)) call.requireAlone()
  const named = tagged.flatMap((unit) => {
    const line = lines.get(unit.line_id)
    return line ? [{ unit, line, item: items.get(unit.item_id ?? '') }] : []
  })
  const bound = await bindItems(call, purchase, named, soldMs)
  const units = await withFacts(
    db,
    named.map((each) => ({ ...each, item: bound.get(each.unit) })),
  )
  const keys = services.authority.keysOf(purchase.tenant as Tenant)
  const receipt = makeReceipt(purchase, store, policyOf(store), units, soldMs, keys, originOf(services.config))
  const rows = units.map(({ unit, item }, n) => ({
    ...unit,
    item_id: item?.item_id ?? null,
    bound: item ? 1 : 0,
    receipt_index: receipt.indexes[n] ?? null,
  }))
  for (const chunk of insertChunks(rows)) await bindUnits(db, chunk)
  const completed = await updatePurchase(db, purchase, {
    status: 'SUCCESS',
    completed_ms: nowMs,
    cti: receipt.cti,
    receipt_token: receipt.token,
    receipt_exp: receipt.exp,
    security_tag_status: purchase.security_tag_mode === 'none' ? null : units.length > 0 ? 'pending' : 'deactivated',
  })
  await retryEvidenceOfReceipt(call, purchase, receipt.cti)
  await stopRecalledUnits(call, completed, allLines, units.length)
  // Renumbers all items of the checkout, because none of them is in payment any more. This includes items that another
  // purchase paid first. Goods of a till were never in payment.
  const hasItems = units.some(({ unit }) => unit.item_id !== null)
  if (hasItems && (purchase.till !== null || (await renumberItemsOf(db, purchase)))) notifyGates(call, store.store_id)
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
    source: purchase.till === null ? 'scan_and_go' : 'till',
  })
  return completed
}

/** Adds the facts that the protection policy uses. */
async function withFacts(db: Db, units: readonly Omit<ReceiptUnit, 'facts'>[]): Promise<ReceiptUnit[]> {
  const products = await productsOfItems(
    db,
    units.flatMap(({ item, line }) => (item ? [{ item, soldCent: valueOf(line) }] : [])),
  )
  return units.map((unit) => {
    const { item, line } = unit
    const { category = '', brand = '' } = item ? factsOfItem(item, valueOf(line), products) : lineFacts(line)
    return { facts: { category, brand, priceCent: valueOf(line) }, ...unit }
  })
}

/**
 * Subtracts the reserved stock. If the reservation lapsed and other baskets reserved the pieces meanwhile, raises an
 * exception, because the payment cannot be undone.
 */
async function consumeReservedStock({ db, nowMs, services }: Call, purchase: Row<'purchase'>): Promise<void> {
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
 * Makes the named items paid and binds them to their units. If an item is no longer for sale, for example because another
 * purchase paid it first, raises an exception and leaves the unit unbound. Returns the bound items by their units.
 */
async function bindItems(
  call: Call,
  purchase: Row<'purchase'>,
  named: readonly { unit: Row<'purchase_unit'>; line: Row<'purchase_line'>; item: Row<'protected_item'> | undefined }[],
  soldMs: number,
): Promise<ReadonlyMap<Row<'purchase_unit'>, Row<'protected_item'>>> {
  const { purchase_id } = purchase
  const scope = { db: call.db, tenant: purchase.tenant, platform: call.services.platform, nowMs: call.nowMs }
  const unitOf = new Map<string, Row<'purchase_unit'>>()
  const changes: { item: Row<'protected_item'>; change: StatusChange }[] = []
  for (const { unit, line, item } of named) {
    if (!item) continue
    const why = unitOf.has(item.item_id) ? 'paid' : whyUnsaleable(item, purchase, line)
    if (why === undefined) {
      const { line_id, product_id, ean } = line
      // An SGTIN that was registered before its product gets the product by its sale.
      const product = item.product_id === null && product_id !== null && { product_id, ean }
      changes.push({ item, change: { item_status: 'paid', purchase_id, line_id, unit_no: unit.unit_no, ...product } })
      unitOf.set(item.item_id, unit)
    } else
      await raiseException(scope, {
        storeId: purchase.store_id,
        kind: 'item_already_paid',
        subject: `${purchase_id}/${item.item_id}`,
        purchaseId: purchase_id,
        detail: `an item of this purchase was ${why} when it was paid`,
      })
  }
  const reported = purchase.till === null ? {} : { reportedMs: soldMs }
  const paid = await updateStatuses(call.db, changes, call.nowMs, reported)
  return new Map(
    [...unitOf].flatMap(([itemId, unit]) => {
      const item = paid.get(itemId)
      return item ? [[unit, item] as const] : []
    }),
  )
}
