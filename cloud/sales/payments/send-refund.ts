import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { connectionOf } from './connection.ts'
import { ProviderFault, type RefundNotice } from './provider.ts'
import { providerNamed } from './providers.ts'
import { findPayment, findRefund, isDue, readConfig, siblingsOf, type Runner, findRefundOfNotice } from './queries.ts'
import { updateRefund } from '../../shop/purchases/refund-queries.ts'
import { DOUBT } from '../../shop/purchases/refunds.ts'
import { recordRefundDone, recordRefundFailed, applyRefundNotice, changesRefund } from './refund-outcome.ts'
import { applyOutsideNotice } from './outside-refunds.ts'

/** Minutes until the next attempt if the provider does not respond. After the last attempt staff must act. */
const RETRY_MINUTES = [1, 5, 30, 120, 720] as const

/** Delay of a refund while another refund of the same payment runs, ms. */
const QUEUE_MS = 60_000

/**
 * Time before the end of a provider's idempotency keys in which the cloud repeats no request any more, ms. Covers slow
 * requests and clocks that differ.
 */
const KEY_GUARD_MS = 3_600_000

/**
 * Sends a due refund and records the result. May be repeated after a crash: the provider's list shows an earlier
 * attempt, or the refund id is the idempotency key. Returns the updated refund.
 */
export async function sendRefund(run: Runner, refundId: string): Promise<Row<'refund'> | undefined> {
  const due = await run.read((db) => findRefund(db, refundId))
  if (due?.state !== 'due') return undefined
  const fault = await learnRefunds(run, due)
  const begun = await run.step((call) => beginTry(call, refundId, due.attempts))
  if (!begun) return undefined
  const { refund, payment, config, doneCents } = begun
  const connection = connectionOf(config, run.services)
  try {
    if (mayHaveSucceeded(refund)) {
      if (fault) throw fault
      if (!connection.findRefunds) assertKeyIsKnown(refund, payment.provider, run.services.platform.clock.wall())
    }
    const request = {
      refundId,
      sessionId: payment.provider_ref ?? '',
      chargeId: payment.charge_ref,
      amountCent: refund.amount_cent,
      currency: refund.currency,
      isRepeated: mayHaveSucceeded(refund),
      doneCents,
    }
    const providerRef = await connection.refund(request)
    return await run.step((call) => recordRefundDone(call, refundId, providerRef))
  } catch (error) {
    if (!(error instanceof ProviderFault)) throw error
    run.services.log.warn(
      { refundId, provider: payment.provider, fault: error.message },
      'the provider did not accept a refund',
    )
    const isOver = error.isFinal || refund.attempts > RETRY_MINUTES.length
    return isOver ? run.step((call) => recordRefusal(call, refund, error)) : refund
  }
}

/**
 * Throws if the provider may have forgotten the idempotency key of an earlier attempt: it might pay again. A backup may
 * lack the attempt; then it happened at the earliest when the refund was created.
 */
function assertKeyIsKnown(refund: Row<'refund'>, provider: string, nowMs: number): void {
  const keyMs = providerNamed(provider)?.refundKeyMs ?? 0
  if (keyMs === Infinity) return
  // A negative age comes from a clock that was ahead, and says nothing.
  const age = nowMs - (refund.sent_ms ?? refund.created_ms)
  if (age >= 0 && age < keyMs - KEY_GUARD_MS) return
  throw new ProviderFault(
    `the result of an earlier attempt is unknown, and ${provider} may pay again if it is repeated. Search there for ` +
      `${refund.refund_id}. If it is missing, send this refundId with notPaid, then repeat the refund`,
    true,
  )
}

/** True if an earlier attempt may have succeeded, although the cloud received no result. */
function mayHaveSucceeded({ attempts, in_doubt }: Row<'refund'>): boolean {
  return attempts > 1 || in_doubt === DOUBT.open
}

/** True if another refund of the same payment was sent and has no result yet. */
function isUnderWay(other: Row<'refund'>, due: Row<'refund'>): boolean {
  return other.state === 'due' && other.attempts > 0 && (due.attempts === 0 || other.refund_id < due.refund_id)
}

/** Records the attempt before the refund is sent. If the process then crashes, the refund becomes due again. */
async function beginTry(call: Call, refundId: string, attemptsBefore: number) {
  const { db, nowMs } = call
  const due = await findRefund(db, refundId)
  const payment = due && (await findPayment(db, due.payment_id ?? ''))
  if (!due || !payment || due.state !== 'due' || !isDue(due.due_ms ?? nowMs, nowMs)) return undefined
  // Another attempt began after the provider's list was read, so the list may lack its result.
  if (due.attempts !== attemptsBefore) return undefined
  call.changed(due.purchase_id)
  // The provider paid this refund before without a request of the cloud (outside-refunds.ts).
  if (due.amount_cent === 0) {
    await recordRefundDone(call, due.refund_id, null)
    return null
  }
  const siblings = await siblingsOf(db, due)
  if (providerNamed(payment.provider)?.refundsOneByOne === true && siblings.some((other) => isUnderWay(other, due))) {
    await updateRefund(db, due, { due_ms: nowMs + QUEUE_MS })
    return null
  }
  const minutes = RETRY_MINUTES[Math.min(due.attempts, RETRY_MINUTES.length - 1)] ?? 720
  const refund = await updateRefund(db, due, {
    attempts: due.attempts + 1,
    sent_ms: due.sent_ms ?? (due.in_doubt === DOUBT.open ? due.created_ms : nowMs),
    due_ms: nowMs + minutes * 60_000,
  })
  const doneCents = siblings.flatMap(({ state, outside, amount_cent: cent }) =>
    state === 'done' && outside !== 'dispute' ? [cent] : [],
  )
  return refund && { refund, payment, config: await readConfig(db, payment.config_id), doneCents }
}

/** Records the failure if no newer attempt was made. */
async function recordRefusal(
  call: Call,
  tried: Row<'refund'>,
  fault: ProviderFault,
): Promise<Row<'refund'> | undefined> {
  const refund = await findRefund(call.db, tried.refund_id)
  if (!refund || refund.state !== 'due' || refund.attempts !== tried.attempts) return refund
  return recordRefundFailed(call, refund, fault.message, !fault.isFinal || mayHaveSucceeded(tried))
}

/**
 * Books what the provider's list of refunds shows, before another refund is sent or staff deny one: results of earlier
 * attempts, and refunds and chargebacks that the cloud did not request. Returns why the list could not be read;
 * undefined if it was read, or if the provider has none.
 */
export async function learnRefunds(run: Runner, refund: Row<'refund'>): Promise<ProviderFault | undefined> {
  const known = await run.read(async (db) => {
    const payment = await findPayment(db, refund.payment_id ?? '')
    return (
      payment && {
        payment,
        config: await readConfig(db, payment.config_id),
        siblings: await siblingsOf(db, refund),
      }
    )
  })
  if (!known) return undefined
  const { payment, config, siblings } = known
  const connection = connectionOf(config, run.services)
  if (!connection.findRefunds) return undefined
  const outsideRefs = siblings.flatMap(({ outside, provider_ref: ref }) =>
    outside !== null && ref !== null ? [ref] : [],
  )
  const { provider_ref: sessionId, charge_ref: chargeId, currency } = payment
  const asked = { sessionId: sessionId ?? '', chargeId, currency, doneCents: requestedCents(siblings), outsideRefs }
  try {
    if (sessionId === null && chargeId === null)
      throw new ProviderFault('the provider has not named the payment yet', false)
    for (const notice of await connection.findRefunds(asked)) await applyListed(run, payment, notice)
    return undefined
  } catch (error) {
    if (!(error instanceof ProviderFault)) throw error
    run.services.log.warn(
      { refundId: refund.refund_id, fault: error.message },
      'the refunds of a payment could not be read',
    )
    return error
  }
}

/** Applies an entry of the provider's list of refunds. */
async function applyListed(run: Runner, payment: Row<'payment'>, { movement, ...notice }: RefundNotice): Promise<void> {
  const ours = await run.read((db) => findRefundOfNotice(db, payment.config_id, notice))
  if (ours && ours.outside === null) {
    if (changesRefund(ours, notice.state)) await run.step((call) => applyRefundNotice(call, ours.refund_id, notice))
  } else if (movement) await run.step((call) => applyOutsideNotice(call, payment.payment_id, { ...notice, movement }))
}

/** Amounts of the completed refunds that the cloud requested. */
function requestedCents(refunds: readonly Row<'refund'>[]): number[] {
  return refunds.flatMap(({ state, outside, amount_cent: cent }) =>
    state === 'done' && outside === null ? [cent] : [],
  )
}
