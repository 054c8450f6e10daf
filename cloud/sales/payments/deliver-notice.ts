import { isIdShaped } from '../../../policy/ids.ts'
import type { Tenant } from '../../platform/foundation/caller.ts'
import type { Services } from '../../platform/operations/operation.ts'
import type { Database } from '../../platform/persistence/database.ts'
import type { PspConfigRow } from '../../platform/persistence/tables/payments.ts'
import { applyNotice, changesAnything } from './apply-notice.ts'
import { applyOutsideNotice } from './outside-refunds.ts'
import { processPayment } from './process-payment.ts'
import type { Notice, PaymentNotice, RefundNotice } from './provider.ts'
import { findPaymentOfMovement, findPaymentOfNotice, findRefundOfNotice } from './queries.ts'
import { applyRefundNotice, changesRefund } from './refund-outcome.ts'
import { refundPayment } from './refund-payment.ts'
import { taskRunner } from './runner.ts'

/**
 * Applies a genuine notice of a provider. Ignores payments of other systems, because the account of a merchant may have
 * more of them. Returns `later` if the provider must send the notice again.
 */
export function deliverNotice(
  database: Database,
  services: Services,
  config: PspConfigRow,
  notice: Notice,
): Promise<'later' | undefined> {
  return 'refundRef' in notice
    ? deliverRefundNotice(database, services, config, notice)
    : deliverPaymentNotice(database, services, config, notice)
}

async function deliverPaymentNotice(
  database: Database,
  services: Services,
  config: PspConfigRow,
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
  config: PspConfigRow,
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
