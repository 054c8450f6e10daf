import { present } from '../operations/fields.ts'
import type { Call } from '../operations/operation.ts'
import type { RefundRow } from '../persistence/tables/payments.ts'
import { raiseException } from '../protection/events.ts'
import { updatePurchase } from '../scan-and-go/queries.ts'
import { connectionOf } from './connection.ts'
import { ProviderFault } from './provider.ts'
import { findPayment, findRefund, readConfig, updateRefund } from './queries.ts'
import type { Runner } from './runner.ts'

/** Minutes until the next try, after each one that nobody answered; after the last one people must look. */
const RETRY_MINUTES = [1, 5, 30, 120, 720] as const

/**
 * Sends a refund that is due once, and notes what became of it. Safe to run twice and after a crash: the refund's id is
 * the idempotency key. Answers the refund as it is then.
 */
export async function sendRefund(run: Runner, refundId: string): Promise<RefundRow | undefined> {
  const begun = await run.step((call) => beginTry(call, refundId))
  if (!begun) return undefined
  const { refund, payment, config } = begun
  try {
    const wish = { refundId, sessionId: payment.provider_ref ?? '', chargeId: payment.charge_ref, amountCent: refund.amount_cent, currency: refund.currency }
    const providerRef = await connectionOf(config, run.services).refund(wish)
    return await run.step((call) => noteDone(call, refund, providerRef))
  } catch (error) {
    if (!(error instanceof ProviderFault)) throw error
    run.services.log.warn({ refundId, provider: payment.provider, fault: error.message }, 'a refund was not taken')
    const isOver = error.isFinal || refund.attempts > RETRY_MINUTES.length
    return isOver ? run.step((call) => noteFailed(call, refund, error)) : refund
  }
}

/** Notes the try before it is made: a crash in the middle leaves a refund that is due again. */
async function beginTry(call: Call, refundId: string) {
  const { db, nowMs } = call
  const due = await findRefund(db, refundId)
  const payment = due && (await findPayment(db, due.payment_id ?? ''))
  if (!due || !payment || due.state !== 'due' || (due.due_ms ?? nowMs) > nowMs) return undefined
  call.changed(due.purchase_id)
  const minutes = RETRY_MINUTES[Math.min(due.attempts, RETRY_MINUTES.length - 1)] ?? 720
  const refund = await updateRefund(db, due, { attempts: due.attempts + 1, due_ms: nowMs + minutes * 60_000 })
  return refund && { refund, payment, config: await readConfig(db, payment.config_id) }
}

async function noteDone(call: Call, tried: RefundRow, providerRef: string): Promise<RefundRow | undefined> {
  const refund = await findRefund(call.db, tried.refund_id)
  if (!refund || refund.state === 'done') return refund
  const done = await updateRefund(call.db, refund, { state: 'done', in_doubt: 0, due_ms: null, provider_ref: providerRef, finished_ms: call.nowMs })
  if (refund.kind === 'whole') await updatePurchase(call.db, await purchaseOf(call, refund), { status: 'CANCELLED', refund_status: 'done' })
  call.changed(refund.purchase_id)
  emitRefunded(call, refund, tried.payment_id === null ? undefined : (await findPayment(call.db, tried.payment_id))?.provider)
  return done
}

/** Tells the merchant's webhooks that money has gone back. */
export function emitRefunded(call: Call, refund: RefundRow, provider: string | undefined): void {
  call.emit({
    type: 'payment.refunded',
    storeId: refund.store_id,
    data: present({
      transactionId: refund.purchase_id,
      storeId: refund.store_id,
      refundId: refund.refund_id,
      provider,
      amountCent: refund.amount_cent,
      currency: refund.currency,
      itemLineIds: refund.line_ids === null ? undefined : (JSON.parse(refund.line_ids) as string[]),
    }),
  })
}

/** The money stays where it is: a cancelled purchase is paid again, and people must look. */
async function noteFailed(call: Call, tried: RefundRow, fault: ProviderFault): Promise<RefundRow | undefined> {
  const { db, nowMs, services } = call
  const refund = await findRefund(db, tried.refund_id)
  if (!refund || refund.state !== 'due' || refund.attempts !== tried.attempts) return refund
  const failed = await updateRefund(db, refund, { state: 'failed', in_doubt: fault.isFinal && tried.attempts === 1 ? 0 : 1, due_ms: null, finished_ms: nowMs })
  if (refund.kind === 'whole') await updatePurchase(db, await purchaseOf(call, refund), { status: 'SUCCESS', refund_status: 'failed' })
  call.changed(refund.purchase_id)
  await raiseException(
    { db, tenant: refund.tenant, platform: services.platform, nowMs },
    { storeId: refund.store_id, kind: 'refund_failed', subject: `${refund.refund_id}/${nowMs}`, purchaseId: refund.purchase_id, detail: `${refund.amount_cent} cents did not go back: ${fault.message}` },
  )
  return failed
}

function purchaseOf({ db }: Call, refund: RefundRow) {
  return db.selectFrom('purchase').selectAll().where('purchase_id', '=', refund.purchase_id).executeTakeFirstOrThrow()
}
