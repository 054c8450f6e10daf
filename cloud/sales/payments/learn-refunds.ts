import type { Row } from '../../platform/persistence/schema.ts'
import { connectionOf } from './connection.ts'
import { applyOutsideNotice } from './outside-refunds.ts'
import { ProviderFault, type RefundNotice } from './provider.ts'
import { findPayment, findRefundOfNotice, readConfig, siblingsOf, type Runner } from './queries.ts'
import { applyRefundNotice, changesRefund } from './refund-outcome.ts'

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
