import type { Call } from '../../platform/operations/operation.ts'
import type { RefundRow } from '../../platform/persistence/tables/payments.ts'
import type { PurchaseRow } from '../../platform/persistence/tables/purchases.ts'
import { raiseException } from '../../protection/records/exceptions.ts'
import {
  hasOpenAuthorizations,
  restorePurchase,
  revokePurchaseRights,
  finishCancellation,
} from '../checkout/cancel-purchase.ts'
import { updatePurchase } from '../../shop/purchases/queries.ts'
import type { RefundNotice } from './provider.ts'
import { findPayment, findRefund } from './queries.ts'
import { refundsOf, updateRefund } from '../../shop/purchases/refund-queries.ts'
import { emitRefunded, bookRefund, unbookRefund } from '../checkout/book-refund.ts'
import { countsAgainstTotal, DOUBT, isPending, unrefundedCent } from '../../shop/purchases/refunds.ts'
import { makeRoom } from './make-room.ts'

/**
 * Records the result of a refund, from the provider's response or a later notification. A completed refund changes
 * reports and loyalty points; a whole refund also cancels the purchase. If the refund fails later, these changes are
 * reversed and staff must act.
 *
 * Values of `refund_status` of a cancelled purchase: `pending` if a refund is pending or an agent may still hold a
 * token; `done` if the whole amount was refunded; `failed` if some refunds of the cancellation completed and some
 * failed.
 *
 * If no refund completed and one failed, the purchase returns to SUCCESS with `failed`.
 */

/** Records that the provider accepted a refund. */
export async function recordRefundDone(
  call: Call,
  refundId: string,
  providerRef: string | null,
): Promise<RefundRow | undefined> {
  const { db, nowMs } = call
  const refund = await findRefund(db, refundId)
  // If the refund certainly failed, the provider has already reported the failure. This report describes a later state
  // than the response to our request.
  if (
    !refund ||
    refund.state === 'done' ||
    refund.state === 'held' ||
    (refund.state === 'failed' && refund.in_doubt === DOUBT.none)
  )
    return refund
  const done = await updateRefund(db, refund, {
    state: 'done',
    in_doubt: DOUBT.none,
    due_ms: null,
    provider_ref: providerRef,
    finished_ms: nowMs,
  })
  if (!done) return refund
  call.changed(refund.purchase_id)
  const purchase = await cancelAfterLateSuccess(call, await purchaseOf(call, refund), refund)
  await bookRefund(call, purchase, done)
  if (refund.kind !== 'late' && purchase.status === 'CANCELLED') await updateCancelledPurchase(call, purchase)
  emitRefunded(
    call,
    done,
    refund.payment_id === null ? undefined : (await findPayment(db, refund.payment_id))?.provider,
  )
  return findRefund(db, refundId)
}

/**
 * Returns the purchase of a completed refund. If a whole refund had failed first and the purchase was restored, cancels
 * the purchase now.
 */
async function cancelAfterLateSuccess(call: Call, purchase: PurchaseRow, refund: RefundRow): Promise<PurchaseRow> {
  if (refund.kind !== 'whole' || purchase.status === 'CANCELLED') return purchase
  return updatePurchase(call.db, purchase, {
    status: 'CANCELLED',
    refund_status: 'pending',
    deny_seq: await revokePurchaseRights(call, purchase),
  })
}

/**
 * Updates a cancelled purchase after one of its refunds completed. Does nothing while other refunds of the purchase are
 * pending. The last of these refunds ends the cancellation.
 */
async function updateCancelledPurchase(call: Call, purchase: PurchaseRow): Promise<void> {
  const refunds = await refundsOf(call.db, purchase.purchase_id)
  if (refunds.some(isPending)) return
  if (refunds.some((refund) => refund.kind === 'whole' && refund.state === 'done')) {
    await updatePurchase(call.db, purchase, {
      refund_status: unrefundedCent(purchase, refunds) > 0 ? 'failed' : 'done',
    })
  } else if (!(await hasOpenAuthorizations(call, purchase))) await finishCancellation(call, purchase)
}

/**
 * Records that a refund failed: restores the cancelled purchase and raises an exception. `inDoubt` means that the
 * result is unknown; such a refund may only be repeated with the same refund id.
 */
export async function recordRefundFailed(
  call: Call,
  refund: RefundRow,
  why: string,
  inDoubt: boolean,
): Promise<RefundRow | undefined> {
  const { db, nowMs, services } = call
  const failed = await updateRefund(db, refund, {
    state: 'failed',
    in_doubt: inDoubt ? DOUBT.open : DOUBT.none,
    due_ms: null,
    finished_ms: nowMs,
  })
  if (!failed) return undefined
  call.changed(refund.purchase_id)
  const purchase = await purchaseOf(call, refund)
  await unbookRefund(call, purchase, failed)
  if (refund.kind !== 'late' && purchase.status === 'CANCELLED') await recordMissingMoney(call, purchase)
  await raiseException(
    { db, tenant: refund.tenant, platform: services.platform, nowMs },
    {
      storeId: refund.store_id,
      kind: 'refund_failed',
      subject: `${refund.refund_id}/${nowMs}`,
      purchaseId: refund.purchase_id,
      detail: `${refund.amount_cent} cents were not refunded: ${why}`,
    },
  )
  return failed
}

/** Restores the purchase, unless another refund of the cancellation completed or is pending. */
export async function recordMissingMoney(call: Call, purchase: PurchaseRow): Promise<void> {
  const refunds = await refundsOf(call.db, purchase.purchase_id)
  if (!refunds.some((refund) => refund.kind === 'whole' && refund.state !== 'failed'))
    await restorePurchase(call, purchase)
  else await updatePurchase(call.db, purchase, { refund_status: refunds.some(isPending) ? 'pending' : 'failed' })
}

/** Applies a notification about a refund. Returns undefined if nothing changes. */
export async function applyRefundNotice(
  call: Call,
  refundId: string,
  { state, refundRef }: Pick<RefundNotice, 'state' | 'refundRef'>,
): Promise<true | undefined> {
  const refund = await findRefund(call.db, refundId)
  if (!refund || !changesRefund(refund, state)) return undefined
  if (state === 'done' && !(await mayBeBooked(call, refund))) await raiseUnclear(call, refund)
  else if (state === 'done') await recordRefundDone(call, refundId, refundRef)
  else if (refund.state === 'failed') await updateRefund(call.db, refund, { in_doubt: DOUBT.none })
  else await recordRefundFailed(call, refund, 'the provider reported the failure later', false)
  call.changed(refund.purchase_id)
  return true
}

/**
 * True if a refund that the provider paid fits into its payment. Only one that staff denied may not fit: they may have
 * refunded its amount again. What is not sent yet of that becomes smaller.
 */
async function mayBeBooked(call: Call, refund: RefundRow): Promise<boolean> {
  if (refund.in_doubt !== DOUBT.deniedByStaff) return true
  const payment = refund.payment_id === null ? undefined : await findPayment(call.db, refund.payment_id)
  const all = await refundsOf(call.db, refund.purchase_id)
  if (refund.kind === 'late')
    return !all.some((other) => other.payment_id === refund.payment_id && countsAgainstTotal(other))
  return payment !== undefined && makeRoom(call, all, payment, refund.amount_cent)
}

async function raiseUnclear({ db, services, nowMs }: Call, refund: RefundRow): Promise<void> {
  await raiseException(
    { db, tenant: refund.tenant, platform: services.platform, nowMs },
    {
      storeId: refund.store_id,
      kind: 'refund_unclear',
      subject: refund.refund_id,
      purchaseId: refund.purchase_id,
      detail: `the provider paid ${refund.amount_cent} cents for ${refund.refund_id}, which staff reported as not paid, and they were refunded again`,
    },
  )
}

/** True if this state would change the refund. */
export function changesRefund(refund: RefundRow, state: RefundNotice['state']): boolean {
  if (refund.state === 'held' || state === 'open') return false
  const isOpen = refund.state === 'failed' && refund.in_doubt !== DOUBT.none
  if (state === 'done') return refund.state === 'due' || isOpen
  return refund.state !== 'failed' || isOpen
}

function purchaseOf({ db }: Call, refund: RefundRow) {
  return db.selectFrom('purchase').selectAll().where('purchase_id', '=', refund.purchase_id).executeTakeFirstOrThrow()
}
