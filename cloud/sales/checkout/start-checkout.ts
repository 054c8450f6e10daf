import { newId } from '../../../policy/ids.ts'
import { UNITS_LIMIT } from '../../../policy/journal.ts'
import { knownCaller, type KnownCaller } from '../../platform/foundation/caller.ts'
import { invalid, precondition } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import { prepared } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { renumberItemsOf, notifyGates } from '../../protection/items/item-sequence.ts'
import { reserveStock } from '../../shop/stock/reserve.ts'
import { approvalNeeded, firstState, stockReservedUntil } from './approval.ts'
import { cancelUnpaidPurchase } from './cancel-purchase.ts'
import { depositLine } from '../../shop/purchases/line-value.ts'
import { findPurchase, insertPurchase } from '../../shop/purchases/queries.ts'
import { priceLines, assertMaySetPrices, type PricedLine } from './price-lines.ts'
import type { CheckoutLine } from '../../shop/purchases/schema.ts'

const recordNewest = prepared((db, p: { sessionId: string; purchaseId: string }) =>
  db.updateTable('shopping_session').set({ purchase_id: p.purchaseId }).where('session_id', '=', p.sessionId),
)

/**
 * Creates a purchase with its lines and tagged units, and reserves counted stock. It replaces the open purchase of the
 * session.
 */
export async function startPurchase(
  call: Call,
  session: Row<'shopping_session'>,
  store: Row<'store'>,
  lines: readonly CheckoutLine[],
  userId: string | undefined,
): Promise<Row<'purchase'>> {
  const { db, nowMs, services } = call
  const caller = knownCaller(call.caller)
  await replaceOpenPurchase(call, session)
  assertMaySetPrices(lines, caller)
  const units = lines.reduce((sum, line) => sum + line.quantity, 0)
  if (units > UNITS_LIMIT)
    throw invalid('items', `contains ${units} units; the maximum is ${UNITS_LIMIT}`, 'too_many_units')
  const isShopper = caller.kind === 'publishable'
  const priced = await priceLines(db, store, lines, nowMs, !isShopper)
  assertPricesKnown(priced, caller)
  const hasItems = priced.some(({ items }) => items.length > 0)
  if (hasItems) call.requireAlone()
  // A shopper's app must not put the purchase of a known customer into the history of another.
  const shopper = { session, userId: (isShopper ? (session.user_id ?? userId) : (userId ?? session.user_id)) ?? null }
  const reason = await approvalNeeded(call, priced, store, shopper)
  const purchase: Row<'purchase'> = {
    purchase_id: newId('pur', services.platform),
    tenant: caller.tenant,
    store_id: store.store_id,
    session_id: session.session_id,
    user_id: shopper.userId,
    checkout_session_id: newId('chk', services.platform),
    ...firstState(reason, caller.mode === 'live', nowMs),
    currency: 'EUR',
    total_cent: sumOf(priced, (line) => line.priceCent),
    value_cent: sumOf(priced, (line) => Math.max(0, line.priceCent, line.listPriceCent ?? 0)),
    security_tag_mode: store.security_tag_mode,
    security_tag_status: store.security_tag_mode === 'none' ? null : 'pending',
    price_origin: originOf(priced, caller),
    cti: null,
    receipt_token: null,
    receipt_exp: null,
    cancel_reason: null,
    refund_status: null,
    deny_seq: null,
    approved_by: null,
    created_ms: nowMs,
    completed_ms: null,
    completed_position: null,
    till: null,
    fiscal: null,
    rev: 1,
  }
  await insertAll(call, purchase, priced)
  await recordNewest(db, { sessionId: session.session_id, purchaseId: purchase.purchase_id })
  if (hasItems && (await renumberItemsOf(db, purchase))) notifyGates(call, store.store_id)
  const stock = priced.map(({ productId, name, quantity }, i) => ({ productId, name, quantity, path: `items[${i}]` }))
  await reserveStock(db, {
    ownerId: purchase.purchase_id,
    tenant: store.tenant,
    storeId: store.store_id,
    lines: stock,
    expiresMs: stockReservedUntil(purchase, nowMs),
    givesWay: isShopper,
  })
  return purchase
}

/** Sum of the lines with their deposits, cents. */
function sumOf(lines: readonly PricedLine[], priceOf: (line: PricedLine) => number): number {
  return lines.reduce((sum, line) => sum + (priceOf(line) + (line.deposit?.cent ?? 0)) * line.quantity, 0)
}

/**
 * Cancels the unpaid purchase of the session, so that a session is never paid twice. If money for that purchase arrives
 * later, it is refunded (payments/apply-notice.ts). Concurrent checkouts of one session write the same session row.
 */
async function replaceOpenPurchase(call: Call, session: Row<'shopping_session'>): Promise<void> {
  if (session.purchase_id === null) return
  const former = await findPurchase(call.db, session.tenant, session.purchase_id)
  if (former?.status !== 'CREATED' && former?.status !== 'PENDING_PAYMENT') return
  call.requireAlone()
  await cancelUnpaidPurchase(call.db, former, { cancel_reason: 'replaced by a new checkout of the session' })
  call.changed(former.purchase_id)
}

/** A shopper's app must not set the price of an item, because payment releases the item (ADR sales). */
function assertPricesKnown(lines: readonly PricedLine[], { kind }: KnownCaller): void {
  const n = lines.findIndex((line) => line.priceOrigin === 'client' && line.items.length > 0)
  if (kind !== 'publishable' || n < 0) return
  throw precondition(
    'price_unknown',
    `items[${n}]: the store has no price for this item: staff must sell it, or register it with a price`,
  )
}

/**
 * Source of the purchase's prices. `shopper` means that a shopper's app set a price, so only staff may release the
 * goods (ADR sales).
 */
function originOf(lines: readonly PricedLine[], caller: KnownCaller): string {
  if (lines.every((line) => line.priceOrigin !== 'client')) return 'server'
  return caller.kind === 'publishable' ? 'shopper' : 'merchant'
}

/** Inserts the purchase, and the lines with their deposit lines and tagged units. */
async function insertAll(
  { db, services }: Call,
  purchase: Row<'purchase'>,
  priced: readonly PricedLine[],
): Promise<void> {
  const lines: Row<'purchase_line'>[] = []
  const units: Row<'purchase_unit'>[] = []
  for (const line of priced) {
    const lineId = newId('lin', services.platform)
    // A line that names items has tagged units even if its product carries no tags.
    const tagged = purchase.security_tag_mode === 'none' ? 0 : line.tagged ? line.quantity : line.items.length
    const row = lineRow(purchase, line, { lineId, lineNo: lines.length, isTagged: tagged > 0 })
    lines.push(row)
    if (line.deposit)
      lines.push(depositLine(row, line.deposit, { lineId: newId('lin', services.platform), lineNo: lines.length }))
    for (let n = 0; n < tagged; n++)
      units.push({
        line_id: lineId,
        unit_no: n + 1,
        purchase_id: purchase.purchase_id,
        item_id: line.items[n]?.item_id ?? null,
        bound: 0,
        receipt_index: null,
        taken_back: null,
      })
  }
  await insertPurchase(db, purchase, lines, units)
}

function lineRow(
  purchase: Row<'purchase'>,
  line: PricedLine,
  made: { lineId: string; lineNo: number; isTagged: boolean },
): Row<'purchase_line'> {
  return {
    line_id: made.lineId,
    purchase_id: purchase.purchase_id,
    tenant: purchase.tenant,
    line_no: made.lineNo,
    name: line.name,
    ean: line.ean,
    product_id: line.productId,
    price_cent: line.priceCent,
    list_price_cent: line.listPriceCent,
    price_reason: line.priceReason,
    quantity: line.quantity,
    vat: line.vat,
    category: line.category,
    brand: line.brand,
    price_origin: line.priceOrigin,
    serial_number: line.serialNumber,
    tagged: made.isTagged ? 1 : 0,
    deposit_of: null,
    barcode: line.weighed?.label.barcode ?? null,
    weight_grams: line.weighed?.label.kind === 'weight' ? line.weighed.label.value : null,
    kg_price_cent: line.weighed?.kgPriceCent ?? null,
    lot: line.unit.lot ?? null,
    expiry: line.unit.expiry ?? null,
    serial: line.unit.serial ?? null,
    till_line: null,
    came_back: 0,
  }
}
