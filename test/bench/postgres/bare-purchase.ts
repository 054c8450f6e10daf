import { randomBytes } from 'node:crypto'
import { newId } from '../../../policy/ids.ts'
import { dayOf } from '../../../cloud/shop/analytics/store-days.ts'
import type { Row } from '../../../cloud/platform/persistence/schema.ts'
import { auditRow, outboxRow, Refused, signed, type BareCall } from './bare-context.ts'
import { BASKET, CHECK_IN, PAY, START_CHECKOUT, UNPAID } from './statements.ts'

/** Time limit of a payment, ms. */
const PAYMENT_MS = 1_800_000
/** Lifetime of a receipt, s. */
const RECEIPT_LIFE = 86_400

/** Opens a session. */
export async function checkIn(call: BareCall, { storeId }: { storeId: string }): Promise<string> {
  const { caller, nowMs, platform, ask } = call
  const session: Row<'shopping_session'> = {
    session_id: newId('ses', platform),
    tenant: caller.tenant,
    store_id: storeId,
    user_id: null,
    created_ms: nowMs,
    purchase_id: null,
    completed: 0,
    spot_check_due: 0,
    vouched: 0,
  }
  const made = await ask(CHECK_IN, [
    storeId,
    caller.tenant,
    dayOf(nowMs),
    '{"sessions":1}',
    auditRow(call, 'checkIn', session.session_id),
    JSON.stringify(session),
  ])
  if (made.length === 0) throw new Refused('no such store')
  const checkedInAt = new Date(nowMs).toISOString()
  return JSON.stringify({ success: true, sessionId: session.session_id, storeId, checkedInAt })
}

interface Basket extends Row<'product'> {
  security_tag_mode: string
  store_id: string
  store_price: number | null
  counted: string | null
}

/** Starts the checkout of one piece of one product. */
export async function startCheckout(
  call: BareCall,
  { sessionId, items }: { sessionId: string; items: readonly { ean: string }[] },
): Promise<string> {
  const { caller, nowMs, platform, ask } = call
  const [basket] = await ask<Basket>(BASKET, [sessionId, caller.tenant, items[0]?.ean])
  if (!basket || basket.store_price === null || basket.counted !== null || items.length !== 1)
    throw new Refused('this basket takes more than the bare route can do')
  const ids = { purchase: newId('pur', platform), line: newId('lin', platform) }
  const purchase = purchaseRow(call, basket, sessionId, ids.purchase)
  const line = lineRow(basket, ids, caller.tenant)
  const unit: Row<'purchase_unit'> = {
    line_id: ids.line,
    unit_no: 1,
    purchase_id: ids.purchase,
    item_id: null,
    bound: 0,
    receipt_index: null,
    taken_back: null,
  }
  await ask(START_CHECKOUT, [
    JSON.stringify(purchase),
    JSON.stringify([line]),
    JSON.stringify([unit]),
    auditRow(call, 'startCheckout', ids.purchase),
    outboxRow(call, basket.store_id, 'payment.created', paymentOf(purchase)),
  ])
  const { line_id: itemLineId, product_id: productId, name, quantity } = line
  const price = basket.store_price / 100
  return JSON.stringify({
    success: true,
    transactionId: ids.purchase,
    storeId: basket.store_id,
    items: [{ itemLineId, productId, name, price, quantity, priceOrigin: 'catalogue' }],
    total: price,
    currency: 'EUR',
    timestamp: new Date(nowMs).toISOString(),
    status: purchase.status,
    securityTagMode: purchase.security_tag_mode,
    securityTagStatus: purchase.security_tag_status,
  })
}

function paymentOf({ purchase_id, store_id, total_cent, currency }: Partial<Row<'purchase'>>) {
  return { transactionId: purchase_id, storeId: store_id, amountCent: total_cent, currency }
}

function purchaseRow(
  { caller, nowMs, platform }: BareCall,
  { store_id, store_price, security_tag_mode }: Basket,
  sessionId: string,
  purchaseId: string,
): Partial<Row<'purchase'>> {
  return {
    purchase_id: purchaseId,
    tenant: caller.tenant,
    store_id,
    session_id: sessionId,
    checkout_session_id: newId('chk', platform),
    status: 'PENDING_PAYMENT',
    payment_by_ms: nowMs + PAYMENT_MS,
    currency: 'EUR',
    total_cent: store_price ?? 0,
    value_cent: store_price ?? 0,
    security_tag_mode,
    security_tag_status: 'pending',
    price_origin: 'server',
    created_ms: nowMs,
    rev: 1,
  }
}

function lineRow(
  basket: Basket,
  ids: { purchase: string; line: string },
  tenant: string,
): Partial<Row<'purchase_line'>> {
  const { name, ean, product_id, vat, category, brand } = basket
  return {
    line_id: ids.line,
    tenant,
    purchase_id: ids.purchase,
    line_no: 0,
    name,
    ean,
    product_id,
    vat,
    category,
    brand,
    price_cent: basket.store_price ?? 0,
    quantity: 1,
    price_origin: 'catalogue',
    came_back: 0,
    tagged: 1,
  }
}

type Unpaid = Row<'purchase'> &
  Row<'purchase_line'> & { document_version: number; trading_name: string; line_id: string }

/** Completes the payment and creates the receipt. */
export async function completeTestCheckout(
  call: BareCall,
  { transactionId }: { transactionId: string },
): Promise<string> {
  const { caller, nowMs, key, ask } = call
  const [purchase] = await ask<Unpaid>(UNPAID, [transactionId, caller.tenant])
  if (purchase?.status !== 'PENDING_PAYMENT') throw new Refused('the checkout is over')
  const { store_id: storeId, session_id: sessionId, total_cent, quantity, vat } = purchase
  const cti = randomBytes(16).toString('hex')
  const exp = Math.floor(nowMs / 1_000) + RECEIPT_LIFE
  const policyVersion = purchase.document_version
  const token = signed({ storeId, exp, cti, units: 1, policyVersion, gtin: purchase.ean, total_cent }, key)
  const tax = total_cent - Math.round((total_cent * 100) / (100 + vat))
  const counts = { completed_checkouts: 1, revenue_cent: total_cent, items_scanned: quantity, receipts: 1 }
  const [done] = await ask<{ paid: number }>(PAY, [
    transactionId,
    purchase.rev,
    nowMs,
    cti,
    token,
    exp,
    dayOf(nowMs),
    JSON.stringify({ ...counts, vat: { [vat]: { sales_cent: total_cent, sales_tax_cent: tax } } }),
    auditRow(call, 'completeTestCheckout', transactionId),
    outboxRow(call, storeId, 'checkout.completed', { transactionId, storeId, sessionId, totalCent: total_cent }),
  ])
  if (done?.paid !== 1) throw new Refused('the checkout was ended at the same time')
  return JSON.stringify({
    success: true,
    transactionId,
    storeId,
    items: [{ itemLineId: purchase.line_id, name: purchase.name, price: purchase.price_cent / 100, quantity }],
    total: total_cent / 100,
    currency: 'EUR',
    timestamp: new Date(nowMs).toISOString(),
    status: 'SUCCESS',
    receipt: { id: transactionId, sessionId, storeName: purchase.trading_name, totalCent: total_cent, tax, token },
  })
}
