import type { Tenant } from '../../platform/foundation/caller.ts'
import { runConcurrently, startDueLoop, type DueLoop } from '../../platform/operations/send-loop.ts'
import type { Services } from '../../platform/operations/operation.ts'
import { groupBy, type Database } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { applyNotice } from './apply-notice.ts'
import { connectionOf } from './connection.ts'
import { CHECK_MINUTES, endUnopenedPayment } from './open-payment.ts'
import { processPayment } from './process-payment.ts'
import { ProviderFault } from './provider.ts'
import { DUE_OF_ACCOUNT, duePayments, dueRefunds, readConfig, updatePayment, taskRunner } from './queries.ts'
import { refundPayment } from './refund-payment.ts'
import { sendRefund } from './send-refund.ts'

/**
 * A job that sends due refunds to the provider. The job also ends payments whose opening crashed, and queries the state
 * of open sessions for which no notification arrived.
 */

const POLL_MS = 15_000
const READ_LIMIT = 50
/**
 * Maximum number of concurrent requests. The job sends several requests at the same time, so that one slow provider
 * does not delay the others.
 */
const AT_ONCE = 25
const NAME = 'due payments'

/** Starts the job for payments and refunds. */
export function startDuePayments(database: Database, services: Services): DueLoop {
  return startDueLoop(services, {
    name: NAME,
    changed: services.paymentsDue,
    pollMs: POLL_MS,
    processDue: () => processDuePayments(database, services),
  })
}

/** Processes a limited number of due refunds and payments. Returns the ms until the next run; 0 if more may be due. */
async function processDuePayments(database: Database, services: Services): Promise<number> {
  const nowMs = services.platform.clock.wall()
  const refunds = await dueRefunds(database.reads, nowMs, READ_LIMIT)
  const payments = await duePayments(database.reads, nowMs, READ_LIMIT)
  const tasks = [
    ...refunds.map((refund) => () => sendDueRefund(refund, database, services)),
    ...payments.map((payment) => () => checkPayment(payment, database, services)),
  ]
  const good = await runConcurrently(tasks, AT_ONCE, services, NAME)
  // An account that had its whole share may have more. A row that nothing changes must not keep the job busy.
  const isFull = [refunds, payments].some((rows) =>
    [...groupBy(rows as readonly { tenant: string }[], (row) => row.tenant).values()].some(
      (ofAccount) => ofAccount.length >= DUE_OF_ACCOUNT,
    ),
  )
  return good && isFull ? 0 : POLL_MS
}

async function sendDueRefund(refund: Row<'refund'>, database: Database, services: Services): Promise<void> {
  await sendRefund(taskRunner(refundPayment, refund.tenant as Tenant, database, services), refund.refund_id)
}

/**
 * Queries an open session as soon as the shopper comes back from the provider's page, because some providers do not
 * report a cancellation. Only before the first scheduled query, as everyone with the address can load the page.
 */
export async function checkOnReturn(payment: Row<'payment'>, database: Database, services: Services): Promise<void> {
  const nowMs = services.platform.clock.wall()
  if (payment.state !== 'open' || payment.checks > 0 || payment.due_ms === null || payment.due_ms <= nowMs) return
  if (await database.write((db) => updatePayment(db, payment, { due_ms: nowMs }))) services.paymentsDue.notify()
}

async function checkPayment(payment: Row<'payment'>, database: Database, services: Services): Promise<void> {
  const run = taskRunner(processPayment, payment.tenant as Tenant, database, services)
  if (payment.state === 'asking') return void (await run.step((call) => endUnopenedPayment(call, payment.payment_id)))
  const checks = payment.checks + 1
  const nowMs = services.platform.clock.wall()
  // The clock may have been ahead when the payment was created.
  const beganMs = Math.min(payment.created_ms, nowMs)
  const minutes = CHECK_MINUTES.find((each) => beganMs + each * 60_000 > nowMs)
  const next = { checks, due_ms: minutes === undefined ? null : beganMs + minutes * 60_000 }
  const claimed = await database.write((db) => updatePayment(db, payment, next))
  if (!claimed || claimed.provider_ref === null) return
  try {
    const notice = await connectionOf(await readConfig(database.reads, payment.config_id), services).findSession(
      claimed.provider_ref,
    )
    if (notice) await run.step((call) => applyNotice(call, payment.payment_id, notice))
  } catch (error) {
    if (!(error instanceof ProviderFault)) throw error
  }
}
