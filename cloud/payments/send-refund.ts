import type { Call } from '../operations/operation.ts'
import type { RefundRow } from '../persistence/tables/payments.ts'
import { connectionOf } from './connection.ts'
import { ProviderFault } from './provider.ts'
import { providerNamed } from './providers.ts'
import { findPayment, findRefund, isDue, readConfig, siblingsOf } from './queries.ts'
import { updateRefund } from '../purchases/refund-queries.ts'
import { recordRefundDone, recordRefundFailed } from './refund-outcome.ts'
import type { Runner } from './runner.ts'

/** Minutes until the next attempt if the provider does not respond. After the last attempt staff must act. */
const RETRY_MINUTES = [1, 5, 30, 120, 720] as const

/** Delay of a refund while another refund of the same payment runs, ms. */
const QUEUE_MS = 60_000

/**
 * Sends a due refund and records the result. May be repeated after a crash, because the refund id is the idempotency
 * key. Returns the updated refund.
 */
export async function sendRefund(run: Runner, refundId: string): Promise<RefundRow | undefined> {
  const begun = await run.step((call) => beginTry(call, refundId))
  if (!begun) return undefined
  const { refund, payment, config, doneCents } = begun
  try {
    const request = {
      refundId,
      sessionId: payment.provider_ref ?? '',
      chargeId: payment.charge_ref,
      amountCent: refund.amount_cent,
      currency: refund.currency,
      isRepeated: mayHaveSucceeded(refund),
      doneCents,
    }
    const providerRef = await connectionOf(config, run.services).refund(request)
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

/** True if an earlier attempt may have succeeded, although the cloud received no result. */
function mayHaveSucceeded({ attempts, in_doubt }: RefundRow): boolean {
  return attempts > 1 || in_doubt === 1
}

/** True if another refund of the same payment was sent and has no result yet. */
function isUnderWay(other: RefundRow, due: RefundRow): boolean {
  return other.state === 'due' && other.attempts > 0 && (due.attempts === 0 || other.refund_id < due.refund_id)
}

/** Records the attempt before the refund is sent. If the process then crashes, the refund becomes due again. */
async function beginTry(call: Call, refundId: string) {
  const { db, nowMs } = call
  const due = await findRefund(db, refundId)
  const payment = due && (await findPayment(db, due.payment_id ?? ''))
  if (!due || !payment || due.state !== 'due' || !isDue(due.due_ms ?? nowMs, nowMs)) return undefined
  call.changed(due.purchase_id)
  const siblings = await siblingsOf(db, due)
  if (providerNamed(payment.provider)?.refundsOneByOne === true && siblings.some((other) => isUnderWay(other, due))) {
    await updateRefund(db, due, { due_ms: nowMs + QUEUE_MS })
    return null
  }
  const minutes = RETRY_MINUTES[Math.min(due.attempts, RETRY_MINUTES.length - 1)] ?? 720
  const refund = await updateRefund(db, due, { attempts: due.attempts + 1, due_ms: nowMs + minutes * 60_000 })
  const doneCents = siblings.filter((other) => other.state === 'done').map((other) => other.amount_cent)
  return refund && { refund, payment, config: await readConfig(db, payment.config_id), doneCents }
}

/** Records the failure if no newer attempt was made. */
async function recordRefusal(call: Call, tried: RefundRow, fault: ProviderFault): Promise<RefundRow | undefined> {
  const refund = await findRefund(call.db, tried.refund_id)
  if (!refund || refund.state !== 'due' || refund.attempts !== tried.attempts) return refund
  return recordRefundFailed(call, refund, fault.message, !fault.isFinal || mayHaveSucceeded(tried))
}
