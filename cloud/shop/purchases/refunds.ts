import { precondition } from '../../platform/foundation/failure.ts'
import { newId } from '../../../policy/ids.ts'
import { actorOf } from '../../platform/foundation/caller.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { piecesOf, sumPieces, type Pieces } from './line-value.ts'
import { updatePurchase } from './queries.ts'
import { appliedPaymentOf, refundsOf, updateRefund } from './refund-queries.ts'

/**
 *   held ──no authorization can be used any more──▶ due ──accepted by the provider──▶ done
 *                                                    └──rejected, or too many attempts──▶ failed
 */
interface NewRefund {
  purchase: Row<'purchase'>
  payment: Row<'payment'> | null
  kind: Row<'refund'>['kind']
  amountCent: number
  state: Row<'refund'>['state']
  lines: readonly Pieces[] | null
  reason: string | undefined
}

/** Maximum refunds of a purchase that people or tills make in parts. Each answer about the purchase reads them all. */
const REFUNDS_LIMIT = 100

/** Lines that these refunds may name together: parts of weighed goods come back any number of times. */
const REFUNDED_LINES_LIMIT = 2_000

/** Why the purchase may get no further refund in parts; undefined if it may. */
export function manyRefunds(refunds: readonly Row<'refund'>[]): string | undefined {
  if (refunds.length >= REFUNDS_LIMIT) return `${REFUNDS_LIMIT} refunds, which is the most`
  const named = refunds.reduce((sum, refund) => sum + piecesOf(refund).length, 0)
  if (named >= REFUNDED_LINES_LIMIT) return `refunds of ${REFUNDED_LINES_LIMIT} lines, which is the most`
  return undefined
}

/** Throws 409 if the purchase may get no further refund in parts. */
export function assertFewRefunds(refunds: readonly Row<'refund'>[]): void {
  const many = manyRefunds(refunds)
  if (many !== undefined) throw precondition('too_many_refunds', `this purchase has ${many}`)
}

/** Inserts a refund. If the caller does not send the refund, a job sends it. */
export async function insertRefund(call: Call, refund: NewRefund): Promise<Row<'refund'>> {
  const { db, nowMs, services } = call
  const row: Row<'refund'> = {
    refund_id: newId('rfd', services.platform),
    tenant: refund.purchase.tenant,
    store_id: refund.purchase.store_id,
    purchase_id: refund.purchase.purchase_id,
    payment_id: refund.payment?.payment_id ?? null,
    kind: refund.kind,
    amount_cent: refund.amountCent,
    currency: refund.purchase.currency,
    lines: refund.lines && JSON.stringify(refund.lines),
    reason: refund.reason ?? null,
    state: refund.state,
    in_doubt: 0,
    attempts: 0,
    sent_ms: null,
    due_ms: refund.state === 'due' ? nowMs : null,
    provider_ref: null,
    outside: null,
    notice_rank: null,
    counted: null,
    created_ms: nowMs,
    finished_ms: refund.state === 'done' ? nowMs : null,
    requested_by: actorOf(call.caller),
  }
  await db.insertInto('refund').values(row).execute()
  return row
}

/** Inserts the refund of goods for which a till has given the money back. */
export function insertTillRefund(
  call: Call,
  refund: Pick<NewRefund, 'purchase' | 'amountCent' | 'lines' | 'reason'>,
): Promise<Row<'refund'>> {
  return insertRefund(call, { ...refund, payment: null, kind: 'part', state: 'done' })
}

/** Values of `in_doubt` of a failed refund. */
export const DOUBT = {
  /** The provider has reported the failure. */
  none: 0,
  /** The provider may have paid it. */
  open: 1,
  /** Staff have searched at the provider and found that it did not pay it. What the provider reports counts more. */
  deniedByStaff: 2,
} as const

/**
 * True if the refund succeeded or may still succeed. The amount and lines of such a refund must not be refunded again.
 */
export function countsAgainstTotal(refund: Row<'refund'>): boolean {
  return refund.state !== 'failed' || refund.in_doubt === DOUBT.open
}

/**
 * Amount of a purchase that can still be refunded, cents. Ignores refunds of late payments, because such payments never
 * belonged to the purchase.
 */
export function refundableCent(purchase: Row<'purchase'>, refunds: readonly Row<'refund'>[]): number {
  return refunds
    .filter((refund) => refund.kind !== 'late' && countsAgainstTotal(refund))
    .reduce((left, refund) => left - refund.amount_cent, purchase.total_cent)
}

/** Returned pieces by line. */
export function returnedPieces(refunds: readonly Row<'refund'>[]): Map<string, Pieces> {
  return sumPieces(refunds.filter(countsAgainstTotal).flatMap(piecesOf))
}

/** Total less completed refunds, cents. */
export function unrefundedCent(purchase: Row<'purchase'>, refunds: readonly Row<'refund'>[]): number {
  return refunds
    .filter((refund) => refund.kind !== 'late' && refund.state === 'done')
    .reduce((left, refund) => left - refund.amount_cent, purchase.total_cent)
}

/** True if the refund repays the purchase and has no result yet. A refund of a late payment does not repay it. */
export function isPending({ kind, state }: Row<'refund'>): boolean {
  return kind !== 'late' && (state === 'held' || state === 'due')
}

/**
 * Makes a refund with unknown result due again, or holds it. The repeated request has the same refund id, and is sent
 * only if the provider cannot pay twice (../../sales/payments/send-refund.ts).
 */
export function retryRefundInDoubt(
  call: Call,
  refund: Row<'refund'>,
  state: 'held' | 'due',
): Promise<Row<'refund'> | undefined> {
  return updateRefund(call.db, refund, {
    state,
    attempts: 0,
    due_ms: state === 'due' ? call.nowMs : null,
    finished_ms: null,
  })
}

/**
 * Creates a refund of the remaining amount of a cancelled purchase. `state` is `held` while an agent may still hold a
 * token. Refunds with an unknown result are sent again with their own ids.
 *
 * Returns the last pending refund. Returns undefined if no refund is pending, or if no provider was paid: in the
 * sandbox and for free baskets.
 */
export async function createWholeRefund(
  call: Call,
  purchase: Row<'purchase'>,
  state: 'held' | 'due',
): Promise<Row<'refund'> | undefined> {
  const payment = await appliedPaymentOf(call.db, purchase.purchase_id)
  if (!payment) return undefined
  const refunds = await refundsOf(call.db, purchase.purchase_id)
  let last = refunds.findLast(isPending)
  for (const refund of refunds) {
    if (refund.kind !== 'late' && refund.state === 'failed' && refund.in_doubt === DOUBT.open)
      last = await retryRefundInDoubt(call, refund, state)
  }
  const amountCent = refundableCent(purchase, refunds)
  if (amountCent <= 0) return last
  return insertRefund(call, {
    purchase,
    payment,
    kind: 'whole',
    amountCent,
    state,
    lines: null,
    reason: purchase.cancel_reason ?? undefined,
  })
}

/** Refunds the part of a cancelled purchase that was not refunded yet. Returns the updated purchase. */
export async function retryMissingRefund(call: Call, purchase: Row<'purchase'>): Promise<Row<'purchase'>> {
  const isHeld = (await refundsOf(call.db, purchase.purchase_id)).some((refund) => refund.state === 'held')
  const refund = await createWholeRefund(call, purchase, isHeld ? 'held' : 'due')
  return refund && purchase.refund_status !== 'pending'
    ? updatePurchase(call.db, purchase, { refund_status: 'pending' })
    : purchase
}

/**
 * Makes the held refunds of a cancelled purchase due. Returns `sent` if no refund is held and at least one refund is
 * pending. Returns `none` if no refund is pending.
 */
export async function releaseHeldRefunds(
  call: Pick<Call, 'db' | 'nowMs'>,
  purchase: Row<'purchase'>,
): Promise<'released' | 'sent' | 'none'> {
  const open = (await refundsOf(call.db, purchase.purchase_id)).filter(isPending)
  const held = open.filter((refund) => refund.state === 'held')
  for (const refund of held) await updateRefund(call.db, refund, { state: 'due', due_ms: call.nowMs })
  if (held.length > 0) return 'released'
  return open.length > 0 ? 'sent' : 'none'
}
