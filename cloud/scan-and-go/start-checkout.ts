import { newId } from '../../policy/ids.ts'
import { knownCaller, type KnownCaller } from '../foundation/caller.ts'
import { invalid, precondition } from '../foundation/failure.ts'
import type { Call } from '../operations/operation.ts'
import { insertChunks } from '../persistence/insert-chunks.ts'
import { preparedInsert } from '../persistence/prepared-insert.ts'
import type {
  PurchaseLineRow,
  PurchaseRow,
  PurchaseUnitRow,
  ShoppingSessionRow,
} from '../persistence/tables/purchases.ts'
import type { StoreRow } from '../persistence/tables/stores.ts'
import { renumberItemsOf, notifyGates } from '../protection/items/item-sequence.ts'
import { reserveStock } from '../stock/reserve.ts'
import { approvalNeeded, firstState, stockReservedUntil } from '../purchase-lifecycle/approval.ts'
import { depositLine } from '../purchases/deposit.ts'
import { priceLines, type PricedLine } from './price-lines.ts'
import { UNITS_LIMIT, type CheckoutLine } from '../purchases/schema.ts'

const insertPurchase = preparedInsert((db, rows: readonly PurchaseRow[]) => db.insertInto('purchase').values(rows))
const insertLines = preparedInsert((db, rows: readonly PurchaseLineRow[]) =>
  db.insertInto('purchase_line').values(rows),
)
const insertUnits = preparedInsert((db, rows: readonly PurchaseUnitRow[]) =>
  db.insertInto('purchase_unit').values(rows),
)

/** Creates a purchase with its lines and tagged units, and reserves counted stock. */
export async function startPurchase(
  call: Call,
  session: ShoppingSessionRow,
  store: StoreRow,
  lines: readonly CheckoutLine[],
  userId: string | undefined,
): Promise<PurchaseRow> {
  const { db, nowMs, services } = call
  const caller = knownCaller(call.caller)
  const priced = await priceLines(db, store, lines, nowMs)
  assertPricesKnown(priced, caller)
  const hasItems = priced.some(({ items }) => items.length > 0)
  if (hasItems) call.requireAlone()
  const units = priced.reduce((sum, line) => sum + line.quantity, 0)
  if (units > UNITS_LIMIT)
    throw invalid('items', `contains ${units} units; the maximum is ${UNITS_LIMIT}`, 'too_many_units')
  const shopper = { session, userId: userId ?? session.user_id }
  const reason = await approvalNeeded(call, priced, store, shopper)
  const purchase: PurchaseRow = {
    purchase_id: newId('pur', services.platform),
    tenant: caller.tenant,
    store_id: store.store_id,
    session_id: session.session_id,
    user_id: shopper.userId,
    checkout_session_id: newId('chk', services.platform),
    ...firstState(reason, caller.mode === 'live', nowMs),
    currency: 'EUR',
    total_cent: priced.reduce((sum, line) => sum + (line.priceCent + (line.deposit?.cent ?? 0)) * line.quantity, 0),
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
    rev: 1,
  }
  await insertPurchase(db, [purchase])
  let n = 0
  for (const line of priced) n += await insertLine(call, purchase, line, n)
  if (hasItems && (await renumberItemsOf(db, purchase))) notifyGates(call, store.store_id)
  const stock = priced.map(({ productId, name, quantity }, i) => ({ productId, name, quantity, path: `items[${i}]` }))
  await reserveStock(db, {
    ownerId: purchase.purchase_id,
    storeId: store.store_id,
    lines: stock,
    expiresMs: stockReservedUntil(purchase, nowMs),
  })
  return purchase
}

/** A shopper's app must not set the price of an item, because payment releases the item (ADR 0008). */
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
 * goods (ADR 0008).
 */
function originOf(lines: readonly PricedLine[], caller: KnownCaller): string {
  if (lines.every((line) => line.priceOrigin !== 'client')) return 'server'
  return caller.kind === 'publishable' ? 'shopper' : 'merchant'
}

/** Inserts a line and its deposit line. Returns the number of inserted lines. */
async function insertLine({ db, services }: Call, purchase: PurchaseRow, line: PricedLine, n: number): Promise<number> {
  const lineId = newId('lin', services.platform)
  // A line that names items has tagged units even if its product carries no tags.
  const tagged = purchase.security_tag_mode === 'none' ? 0 : line.tagged ? line.quantity : line.items.length
  const row: PurchaseLineRow = {
    line_id: lineId,
    purchase_id: purchase.purchase_id,
    line_no: n,
    name: line.name,
    ean: line.ean,
    product_id: line.productId,
    price_cent: line.priceCent,
    quantity: line.quantity,
    vat: line.vat,
    category: line.category,
    brand: line.brand,
    price_origin: line.priceOrigin,
    serial_number: line.serialNumber,
    tagged: tagged > 0 ? 1 : 0,
    deposit_of: null,
    barcode: line.weighed?.label.barcode ?? null,
    weight_grams: line.weighed?.label.kind === 'weight' ? line.weighed.label.value : null,
    kg_price_cent: line.weighed?.kgPriceCent ?? null,
  }
  const rows = line.deposit
    ? [row, depositLine(row, line.deposit, { lineId: newId('lin', services.platform), lineNo: n + 1 })]
    : [row]
  await insertLines(db, rows)
  const units = Array.from({ length: tagged }, (_, i) => ({
    line_id: lineId,
    unit_no: i + 1,
    purchase_id: purchase.purchase_id,
    item_id: line.items[i]?.item_id ?? null,
    bound: 0,
    receipt_index: null,
    taken_back: null,
  }))
  for (const chunk of insertChunks(units)) await insertUnits(db, chunk)
  return rows.length
}
