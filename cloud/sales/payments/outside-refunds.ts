import type { ExceptionKind } from '../../../policy/vocabulary.ts'
import { assert } from '../../../policy/assert.ts'
import { eurosOf } from '../../platform/operations/fields.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { acknowledgeOpenException, raiseException, WITHDRAWN } from '../../protection/records/exceptions.ts'
import { bookRefund, unbookRefund, emitRefunded } from '../checkout/book-refund.ts'
import { cancelPurchase, restorePurchase } from '../checkout/cancel-purchase.ts'
import { updatePurchase, readPurchase } from '../../shop/purchases/queries.ts'
import { refundsOf, updateRefund } from '../../shop/purchases/refund-queries.ts'
import { countsAgainstTotal, insertRefund, unrefundedCent } from '../../shop/purchases/refunds.ts'
import type { Movement, RefundNotice } from './provider.ts'
import { makeRoom, mayBe } from './make-room.ts'
import { findPayment } from './queries.ts'
import { recordMissingMoney, recordRefundDone } from './refund-outcome.ts'

/**
 * Money that moved at the provider although the cloud did not request it: refunds in the provider's dashboard,
 * chargebacks, disputes. The cloud books it as a refund of its own (`refund.outside`) if payment and amount are certain,
 * so that a later refund pays only what is left. Otherwise it raises an exception.
 *
 * The newest notice about a refund or dispute decides, in whatever order notices arrive (`notice_rank`):
 *
 *   (unknown) ──done──▶ done ◀──▶ failed ◀──failed── (unknown)
 */

/** A notice whose refund the cloud did not request. */
type OutsideNotice = RefundNotice & { movement: Movement }

/**
 * Applies such a notice. Returns `later` if it may be about a refund that the cloud is sending: the provider must send
 * it again. Returns undefined if nothing changes.
 */
export async function applyOutsideNotice(
  call: Call,
  paymentId: string,
  notice: OutsideNotice,
): Promise<true | 'later' | undefined> {
  const { movement, refundRef, state } = notice
  const payment = await findPayment(call.db, paymentId)
  if (!payment) return undefined
  const all = await refundsOf(call.db, payment.purchase_id)
  const own = all.filter((refund) => refund.payment_id === paymentId)
  if (movement.chargeId !== null && payment.charge_ref !== null && movement.chargeId !== payment.charge_ref)
    return state === 'done' ? settleSecondCharge(call, payment, movement.chargeId) : undefined
  const known = own.find((refund) => refund.provider_ref === refundRef)
  if (known) return known.outside === null ? undefined : changeState(call, payment, known, notice)
  if (state === 'open') return raise(call, payment, 'payment_disputed', notice, 'no money has moved yet', OPENED)
  const ours = notice.refundId === null && movement.kind === 'refund' ? own.filter(mayBe) : []
  if (ours.some(({ state: its }) => its !== 'failed')) return 'later'
  const doubtful = ours.find((refund) => refund.amount_cent === movement.amountCent)
  if (doubtful && state === 'done') return (await recordRefundDone(call, doubtful.refund_id, refundRef)) && true
  if (movement.amountCent === null || movement.currency?.toUpperCase() !== payment.currency)
    return state === 'done'
      ? raise(call, payment, 'refund_unclear', notice, 'amount or currency are unknown')
      : undefined
  const unsent =
    state === 'done' && payment.applied === 1
      ? await makeRoom(call, all, payment, notice.movement.amountCent ?? 0)
      : true
  if (!unsent) return raise(call, payment, 'refund_unclear', notice, 'it is more than what is left of the payment')
  const refund = await insertOutside(call, payment, notice, movement.amountCent)
  return state === 'done' ? tookEffect(call, payment, refund, notice) : cameBack(call, payment, refund)
}

async function insertOutside(
  call: Call,
  payment: Row<'payment'>,
  { movement: { kind, rank }, refundRef, state }: OutsideNotice,
  amountCent: number,
): Promise<Row<'refund'>> {
  const refund = await insertRefund(call, {
    purchase: await readPurchase(call.db, payment.purchase_id),
    payment,
    kind: payment.state === 'paid' && payment.applied === 0 ? 'late' : 'part',
    amountCent,
    state: state === 'done' ? 'done' : 'failed',
    lines: null,
    reason: undefined,
  })
  const made = await updateRefund(call.db, refund, { outside: kind, notice_rank: rank, provider_ref: refundRef })
  assert(made, `refund ${refund.refund_id} is new`)
  call.changed(payment.purchase_id)
  return made
}

/** Applies a newer state of a known refund or dispute. */
async function changeState(
  call: Call,
  payment: Row<'payment'>,
  refund: Row<'refund'>,
  notice: OutsideNotice,
): Promise<true | undefined> {
  const { rank } = notice.movement
  if (notice.state === 'open' || notice.state === refund.state) return undefined
  if (rank !== null && refund.notice_rank !== null && rank <= refund.notice_rank) return undefined
  const isDone = notice.state === 'done'
  const all = await refundsOf(call.db, payment.purchase_id)
  const leftCent = all
    .filter((other) => other.kind !== 'late' && countsAgainstTotal(other))
    .reduce((left, other) => left - other.amount_cent, payment.amount_cent)
  if (isDone && payment.applied === 1 && leftCent < refund.amount_cent)
    return raise(call, payment, 'refund_unclear', notice, 'it is more than what is left of the payment')
  const changed = await updateRefund(call.db, refund, {
    state: isDone ? 'done' : 'failed',
    notice_rank: rank ?? refund.notice_rank,
    finished_ms: call.nowMs,
  })
  if (!changed) return undefined
  call.changed(payment.purchase_id)
  return isDone ? tookEffect(call, payment, changed, notice) : cameBack(call, payment, changed)
}

/** Books a refund of a paid purchase, and tells staff. */
async function tookEffect(
  call: Call,
  payment: Row<'payment'>,
  refund: Row<'refund'>,
  notice: OutsideNotice,
): Promise<true> {
  const kind = refund.outside === 'dispute' ? 'payment_disputed' : 'refunded_outside'
  await raise(call, payment, kind, notice, 'it is booked')
  if (payment.applied === 1) await bookOutsideRefunds(call, payment)
  return true
}

/**
 * Books the outside refunds of a payment that are not booked yet. If nothing of the purchase is left, its rights end:
 * the purchase is cancelled, as by a refund of the whole purchase.
 */
export async function bookOutsideRefunds(call: Call, payment: Row<'payment'>): Promise<void> {
  const due = (await refundsOf(call.db, payment.purchase_id)).filter(
    (refund) => refund.outside !== null && refund.state === 'done' && refund.counted === null && refund.kind !== 'late',
  )
  if (due.length === 0) return
  const purchase = await readPurchase(call.db, payment.purchase_id)
  for (const refund of due) {
    await bookRefund(call, purchase, refund)
    emitRefunded(call, refund, payment.provider)
  }
  if (purchase.status !== 'SUCCESS') return
  if (unrefundedCent(purchase, await refundsOf(call.db, purchase.purchase_id)) <= 0)
    await cancelPurchase(call, purchase, 'the provider paid the whole amount back')
}

/** Cents of a payment that the provider paid back without a request of the cloud. */
export async function outsideCent(call: Call, payment: Row<'payment'>): Promise<number> {
  return (await refundsOf(call.db, payment.purchase_id))
    .filter((refund) => refund.payment_id === payment.payment_id && refund.outside !== null && refund.state === 'done')
    .reduce((sum, refund) => sum + refund.amount_cent, 0)
}

/** Reverses a refund whose money is back at the merchant: a dispute that was won, a refund that failed. */
async function cameBack(call: Call, payment: Row<'payment'>, refund: Row<'refund'>): Promise<true> {
  if (refund.counted !== null) {
    const purchase = await readPurchase(call.db, payment.purchase_id)
    await unbookRefund(call, purchase, refund)
    if (purchase.status === 'CANCELLED') await undoCancellation(call, purchase)
  }
  const kind = refund.outside === 'dispute' ? 'payment_disputed' : 'refunded_outside'
  const reference = refund.provider_ref ?? ''
  for (const each of [reference, `${reference}${OPENED}`]) await withdraw(call, payment, kind, each)
  return true
}

/**
 * Restores a purchase that was cancelled because nothing was left of its money. If staff cancelled it, it stays
 * cancelled, and the money is missing to the customer.
 */
async function undoCancellation(call: Call, purchase: Row<'purchase'>): Promise<void> {
  const whole = (await refundsOf(call.db, purchase.purchase_id)).filter(
    (refund) => refund.kind === 'whole' && refund.state !== 'failed',
  )
  if (whole.some((refund) => refund.amount_cent > 0 || refund.payment_id !== null)) {
    await recordMissingMoney(call, purchase)
    return
  }
  for (const refund of whole) {
    const failed = await updateRefund(call.db, refund, { state: 'failed' })
    if (failed) await unbookRefund(call, purchase, failed)
  }
  await updatePurchase(call.db, await restorePurchase(call, purchase), { refund_status: null })
}

/** Records that a customer paid twice. */
export async function recordSecondCharge(
  call: Call,
  payment: Row<'payment'>,
  charge: { chargeId: string; amountCent: number | null; currency: string | null },
): Promise<void> {
  await raiseException(scopeOf(call, payment), {
    ...aboutOf(payment, charge.chargeId),
    kind: 'second_charge',
    detail:
      `${moneyOf(charge.amountCent, charge.currency)} were paid a second time at ${payment.provider} ` +
      `(${charge.chargeId}): refund this payment there`,
  })
}

/** Ends the exception about a second charge after its refund. */
async function settleSecondCharge(call: Call, payment: Row<'payment'>, chargeId: string): Promise<true> {
  await withdraw(call, payment, 'second_charge', chargeId)
  return true
}

function withdraw(call: Call, payment: Row<'payment'>, kind: ExceptionKind, reference: string): Promise<void> {
  const { storeId, subject } = aboutOf(payment, reference)
  return acknowledgeOpenException(call.db, { storeId, kind, subject, by: WITHDRAWN, atMs: call.nowMs })
}

/** Suffix of the exception about a dispute that has not moved money. */
const OPENED = '/open'

async function raise(
  call: Call,
  payment: Row<'payment'>,
  kind: ExceptionKind,
  { movement, refundRef }: OutsideNotice,
  why: string,
  suffix = '',
): Promise<true> {
  const what = movement.kind === 'dispute' ? 'dispute' : 'refund'
  await raiseException(scopeOf(call, payment), {
    ...aboutOf(payment, `${refundRef}${suffix}`),
    kind,
    detail: `${what} ${refundRef} of ${moneyOf(movement.amountCent, movement.currency)} at ${payment.provider}: ${why}`,
  })
  return true
}

function scopeOf({ db, nowMs, services }: Call, { tenant }: Row<'payment'>) {
  return { db, tenant, platform: services.platform, nowMs }
}

function aboutOf(payment: Row<'payment'>, reference: string) {
  return { storeId: payment.store_id, subject: `${payment.payment_id}/${reference}`, purchaseId: payment.purchase_id }
}

function moneyOf(cent: number | null, currency: string | null): string {
  return cent === null ? 'an unknown amount' : `${eurosOf(cent).toFixed(2)} ${currency ?? ''}`.trim()
}
