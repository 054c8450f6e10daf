import { assert } from '../../../policy/assert.ts'
import { newId } from '../../../policy/ids.ts'
import { originOf } from '../../platform/foundation/config.ts'
import { Failure, precondition } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { PAYMENT_MS } from '../checkout/approval.ts'
import { cancelUnpaidPurchase } from '../checkout/cancel-purchase.ts'
import { updatePurchase, readPurchase } from '../../shop/purchases/queries.ts'
import { connectionOf } from './connection.ts'
import { ProviderFault, type Session } from './provider.ts'
import { currentConfig, findPayment, readConfig, updatePayment, findPaymentOfNotice, type Runner } from './queries.ts'

/**
 * Opens a payment in three steps. A transaction stores the payment as `asking`. The provider creates a
 * session. A second transaction stores the payment as `open` and the purchase as PENDING_PAYMENT. If the provider fails
 * or does not respond in time, the purchase is cancelled and the call fails with 503.
 *
 * Concurrent calls for the same payment send the same request to the provider, because the payment id is the
 * idempotency key.
 */

/** Time after which the job regards an opening as crashed, ms. */
const OPENING_MS = 2 * 60_000

/** Minutes after creation at which the job queries an open session. */
export const CHECK_MINUTES = [2, 5, 10, 20, 29, 35, 65] as const

/** Address of the checkout page. The page redirects to the provider's page, or waits for staff approval. */
export function checkoutPageOf(purchase: Row<'purchase'>, call: Pick<Call, 'services'>): string {
  return `${originOf(call.services.config)}/checkout/${purchase.checkout_session_id}`
}

/** Address for notifications of a store's provider. */
export function notificationUrlOf(
  { provider, store_id: storeId }: Pick<Row<'psp_config'>, 'provider' | 'store_id'>,
  { services }: Pick<Call, 'services'>,
): string {
  return `${services.config.baseUrl}/notify/${provider}/${storeId}`
}

/** Current provider settings of a store. Throws 409 if there are none. */
export async function pspOf(call: Call, storeId: string) {
  const config = await currentConfig(call.db, storeId)
  if (!config)
    throw precondition(
      'psp_not_configured',
      'no payment service provider is configured for this store: use configurePSP',
    )
  return config
}

/** Inserts a payment that is about to be opened at the store's provider. */
export async function beginPayment(call: Call, purchase: Row<'purchase'>): Promise<Row<'payment'>> {
  const config = await pspOf(call, purchase.store_id)
  const payment: Row<'payment'> = {
    payment_id: newId('pay', call.services.platform),
    tenant: purchase.tenant,
    store_id: purchase.store_id,
    purchase_id: purchase.purchase_id,
    config_id: config.config_id,
    provider: config.provider,
    provider_ref: null,
    charge_ref: null,
    url: null,
    amount_cent: purchase.total_cent,
    currency: purchase.currency,
    state: 'asking',
    applied: 0,
    checks: 0,
    due_ms: call.nowMs + OPENING_MS,
    created_ms: call.nowMs,
    paid_ms: null,
  }
  await call.db.insertInto('payment').values(payment).execute()
  return payment
}

/** False if the payment has ended. A payment ends together with its purchase. */
export async function canStillBeOpened({ db }: Pick<Call, 'db'>, paymentId: string | null): Promise<boolean> {
  return paymentId === null || (await findPayment(db, paymentId))?.state !== 'ended'
}

/**
 * Opens a payment at the provider. Returns the payment with its `url`. Throws 503 and cancels the purchase if the
 * provider does not respond.
 */
export async function openPayment(run: Runner, paymentId: string): Promise<Row<'payment'>> {
  const { payment, purchase, store } = await run.read((db) => readPayment(db, paymentId))
  if (payment.state !== 'asking') return payment
  let session: Session
  try {
    session = await createSession(run, payment, purchase, store)
  } catch (error) {
    if (!(error instanceof ProviderFault)) throw error
    run.services.log.warn(
      { paymentId: payment.payment_id, provider: payment.provider, fault: error.message },
      'a payment could not be opened',
    )
    const open = await run.step((call) => endUnopenedPayment(call, payment.payment_id))
    if (open?.state === 'open') return open
    throw new Failure(
      'unavailable',
      'the payment service provider does not respond, and the purchase was cancelled; start a new checkout',
      {
        reason: 'psp_unavailable',
        retryAfter: 5,
      },
    )
  }
  const opened = await run.step((call) => recordOpened(call, payment.payment_id, session))
  if (!opened?.url)
    throw precondition('checkout_ended', 'the purchase ended while its payment was opened: start a new checkout')
  return opened
}

async function readPayment(
  db: Db,
  paymentId: string,
): Promise<{ payment: Row<'payment'>; purchase: Row<'purchase'>; store: Row<'store'> }> {
  const payment = await findPayment(db, paymentId)
  assert(payment, `payment ${paymentId} is gone`)
  const purchase = await readPurchase(db, payment.purchase_id)
  const store = await db
    .selectFrom('store')
    .selectAll()
    .where('store_id', '=', payment.store_id)
    .executeTakeFirstOrThrow()
  return { payment, purchase, store }
}

async function createSession(
  run: Runner,
  payment: Row<'payment'>,
  purchase: Row<'purchase'>,
  store: Row<'store'>,
): Promise<Session> {
  const config = await run.read((db) => readConfig(db, payment.config_id))
  const session = await connectionOf(config, run.services).createSession({
    paymentId: payment.payment_id,
    amountCent: payment.amount_cent,
    currency: payment.currency,
    returnUrl: `${checkoutPageOf(purchase, run)}?returned=1`,
    notifyUrl: notificationUrlOf(config, run),
    title: store.trading_name,
    untilMs: payment.created_ms + PAYMENT_MS,
  })
  const notice = { sessionId: session.sessionId, paymentId: null }
  const former = await run.read((db) => findPaymentOfNotice(db, payment.config_id, notice))
  // Its notification would count for the other payment.
  if (former && former.payment_id !== payment.payment_id)
    throw new ProviderFault(`the provider gave the session id of payment ${former.payment_id} again`, true)
  return session
}

async function recordOpened(
  call: Call,
  paymentId: string,
  { sessionId, url }: Session,
): Promise<Row<'payment'> | undefined> {
  const payment = await findPayment(call.db, paymentId)
  if (!payment || payment.state === 'open') return payment
  if (payment.state !== 'asking') {
    // The payment has ended, but money may still arrive late. The session id then identifies the payment.
    if (payment.provider_ref === null) await updatePayment(call.db, payment, { provider_ref: sessionId })
    return undefined
  }
  const dueMs = payment.created_ms + CHECK_MINUTES[0] * 60_000
  const opened = await updatePayment(call.db, payment, { state: 'open', provider_ref: sessionId, url, due_ms: dueMs })
  const purchase = await readPurchase(call.db, payment.purchase_id)
  if (purchase.status !== 'CREATED') return undefined
  await updatePurchase(call.db, purchase, { status: 'PENDING_PAYMENT', payment_by_ms: call.nowMs + PAYMENT_MS })
  call.changed(purchase.purchase_id)
  call.emit({
    type: 'payment.created',
    storeId: payment.store_id,
    data: {
      transactionId: purchase.purchase_id,
      storeId: payment.store_id,
      paymentId: payment.payment_id,
      provider: payment.provider,
      amountCent: payment.amount_cent,
      currency: payment.currency,
    },
  })
  return opened
}

/** Emits `payment.created` for a test purchase when its test page opens. Free purchases have no payment. */
export function emitTestPayment(call: Call, purchase: Row<'purchase'>): void {
  const { purchase_id: transactionId, store_id: storeId, total_cent: amountCent, currency, status } = purchase
  if (status !== 'PENDING_PAYMENT' || amountCent === 0) return
  call.emit({ type: 'payment.created', storeId, data: { transactionId, storeId, amountCent, currency } })
}

/**
 * Ends a payment that was never opened and cancels its purchase. Returns the payment unchanged if it was opened
 * meanwhile.
 */
export async function endUnopenedPayment(call: Call, paymentId: string): Promise<Row<'payment'> | undefined> {
  const payment = await findPayment(call.db, paymentId)
  if (!payment || payment.state !== 'asking') return payment
  const ended = await updatePayment(call.db, payment, { state: 'ended', due_ms: null })
  const purchase = await readPurchase(call.db, payment.purchase_id)
  if (purchase.status === 'CREATED')
    await cancelUnpaidPurchase(call.db, purchase, { cancel_reason: 'the payment service provider did not answer' })
  call.changed(payment.purchase_id)
  return ended
}
