import type { Call, Services } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { raiseException } from '../../protection/records/exceptions.ts'
import { completePurchase } from '../checkout/complete-purchase.ts'
import { cancelUnpaidPurchase } from '../checkout/cancel-purchase.ts'
import { findStore } from '../../platform/stores/queries.ts'
import type { PaymentNotice, Notice, RefundNotice } from './provider.ts'
import { bookOutsideRefunds, outsideCent, recordSecondCharge, applyOutsideNotice } from './outside-refunds.ts'
import {
  findPayment,
  updatePayment,
  findPaymentOfMovement,
  findPaymentOfNotice,
  findRefundOfNotice,
  taskRunner,
} from './queries.ts'
import { insertRefund } from '../../shop/purchases/refunds.ts'
import { isIdShaped } from '../../../policy/ids.ts'
import type { Tenant } from '../../platform/foundation/caller.ts'
import type { Database } from '../../platform/persistence/database.ts'
import { processPayment } from './process-payment.ts'
import { applyRefundNotice, changesRefund } from './refund-outcome.ts'
import { refundPayment } from './refund-payment.ts'
import { readPurchase } from '../../shop/purchases/queries.ts'

/**
 * Applies a provider's notification about a session. Notifications may arrive in any order and repeatedly. Returns
 * undefined if nothing changes. A payment for an ended purchase is refunded automatically (ADR sales).
 *
 *  asking, open ──ended──▶ ended         cancels the purchase (CANCELLED)
 *  asking, open, ended ──paid──▶ paid    completes the purchase (SUCCESS), or refunds the payment
 */
export async function applyNotice(call: Call, paymentId: string, notice: PaymentNotice): Promise<true | undefined> {
  const payment = await findPayment(call.db, paymentId)
  if (!payment || !changesAnything(payment, notice)) return undefined
  call.changed(payment.purchase_id)
  if (payment.state === 'paid' && notice.chargeId !== null) {
    if (payment.charge_ref === null) await updatePayment(call.db, payment, { charge_ref: notice.chargeId })
    else await recordSecondCharge(call, payment, { ...notice, chargeId: notice.chargeId })
    return true
  }
  if (notice.state === 'paid') return recordPaid(call, payment, notice)
  await updatePayment(call.db, payment, {
    state: 'ended',
    due_ms: null,
    provider_ref: notice.sessionId ?? payment.provider_ref,
  })
  const purchase = await readPurchase(call.db, payment.purchase_id)
  if (purchase.status === 'CREATED' || purchase.status === 'PENDING_PAYMENT') {
    await cancelUnpaidPurchase(call.db, purchase, { cancel_reason: 'the payment was declined, cancelled or expired' })
  }
  return true
}

/** True if a notification would change this payment. */
function changesAnything(payment: Row<'payment'>, notice: PaymentNotice): boolean {
  // Some providers send the charge id later, and refunds need the charge id. Another one means a second charge.
  if (payment.state === 'paid')
    return notice.state === 'paid' && notice.chargeId !== null && notice.chargeId !== payment.charge_ref
  return notice.state === 'paid' || payment.state !== 'ended'
}

async function recordPaid(call: Call, payment: Row<'payment'>, notice: PaymentNotice): Promise<true> {
  const { db, nowMs, services } = call
  const purchase = await readPurchase(call.db, payment.purchase_id)
  const amountCent = notice.amountCent ?? payment.amount_cent
  const isRight =
    amountCent === payment.amount_cent && (notice.currency ?? payment.currency).toUpperCase() === payment.currency
  const isAwaited =
    purchase.status === 'PENDING_PAYMENT' || (purchase.status === 'CREATED' && purchase.approval !== 'awaiting')
  const paid = {
    state: 'paid',
    due_ms: null,
    paid_ms: nowMs,
    provider_ref: notice.sessionId ?? payment.provider_ref,
    charge_ref: notice.chargeId,
  } as const
  const isApplied = isRight && isAwaited
  await updatePayment(db, payment, { ...paid, applied: isApplied ? 1 : 0 })
  const backCent = isApplied ? 0 : await outsideCent(call, payment)
  if (backCent > 0)
    await db
      .updateTable('refund')
      .set({ kind: 'late' })
      .where('payment_id', '=', payment.payment_id)
      .where('outside', 'is not', null)
      .execute()
  const scope = { db, tenant: payment.tenant, platform: services.platform, nowMs }
  const about = { storeId: payment.store_id, subject: payment.payment_id, purchaseId: payment.purchase_id }
  if (!isRight) {
    await raiseException(scope, {
      ...about,
      kind: 'payment_mismatch',
      detail:
        `the provider received ${amountCent} cents ${notice.currency ?? ''} instead of ${payment.amount_cent} ` +
        `${payment.currency}`,
    })
    return true
  }
  if (isAwaited) {
    const store = await findStore(db, purchase.store_id)
    if (!store) throw new Error(`store ${purchase.store_id} is gone`)
    await completePurchase(call, purchase, store)
    await bookOutsideRefunds(call, payment)
    return true
  }
  if (backCent >= amountCent) return true
  await insertRefund(call, {
    purchase,
    payment,
    kind: 'late',
    amountCent: amountCent - backCent,
    state: 'due',
    reason: `the purchase was ${purchase.status}`,
    lines: null,
  })
  call.afterCommit(() => services.paymentsDue.notify())
  await raiseException(scope, {
    ...about,
    kind: 'late_payment',
    detail: `a payment arrived when the purchase was ${purchase.status}; it is refunded`,
  })
  return true
}

/**
 * Applies a genuine notice of a provider. Ignores payments of other systems, because the account of a merchant may have
 * more of them. Returns `later` if the provider must send the notice again.
 */
export function deliverNotice(
  database: Database,
  services: Services,
  config: Row<'psp_config'>,
  notice: Notice,
): Promise<'later' | undefined> {
  return 'refundRef' in notice
    ? deliverRefundNotice(database, services, config, notice)
    : deliverPaymentNotice(database, services, config, notice)
}

async function deliverPaymentNotice(
  database: Database,
  services: Services,
  config: Row<'psp_config'>,
  notice: PaymentNotice,
): Promise<undefined> {
  const payment = await findPaymentOfNotice(database.reads, config.config_id, notice)
  if (!payment || !changesAnything(payment, notice)) return
  const run = taskRunner(processPayment, payment.tenant as Tenant, database, services)
  await run.step((call) => applyNotice(call, payment.payment_id, notice))
}

async function deliverRefundNotice(
  database: Database,
  services: Services,
  config: Row<'psp_config'>,
  { movement, ...notice }: RefundNotice,
): Promise<'later' | undefined> {
  const names = { ...notice, refundId: ourId(notice.refundId) }
  const refund = await findRefundOfNotice(database.reads, config.config_id, names)
  if (refund?.outside === null) {
    if (!changesRefund(refund, notice.state)) return undefined
    const run = taskRunner(refundPayment, refund.tenant as Tenant, database, services)
    await run.step((call) => applyRefundNotice(call, refund.refund_id, notice))
    return undefined
  }
  const moved = movement && { ...movement, paymentId: ourId(movement.paymentId) }
  const payment = moved && (await findPaymentOfMovement(database.reads, config.config_id, moved))
  if (!payment) return undefined
  const run = taskRunner(refundPayment, payment.tenant as Tenant, database, services)
  const done = await run.step((call) => applyOutsideNotice(call, payment.payment_id, { ...notice, movement: moved }))
  return done === 'later' ? 'later' : undefined
}

/** Returns null for a text without the form of our ids, so that the text never reaches a database query. */
export function ourId(id: string | null): string | null {
  return id !== null && isIdShaped(id) ? id : null
}
