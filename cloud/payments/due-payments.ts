import type { Cancel } from '../../policy/platform.ts'
import type { Tenant } from '../operations/caller.ts'
import type { Services } from '../operations/operation.ts'
import type { Database } from '../persistence/database.ts'
import type { PaymentRow, RefundRow } from '../persistence/tables/payments.ts'
import { applyNotice } from './apply-notice.ts'
import { connectionOf } from './connection.ts'
import { CHECK_MINUTES, giveUp } from './open-payment.ts'
import { processPayment } from './process-payment.ts'
import { ProviderFault } from './provider.ts'
import { duePayments, dueRefunds, readConfig, updatePayment } from './queries.ts'
import { refundPayment } from './refund-payment.ts'
import { taskRunner } from './runner.ts'
import { sendRefund } from './send-refund.ts'

/**
 *   every 15 s ──────────────────┐    refunds that are due: sent to the provider
 *   a commit that left a refund ─┴──▶ payments that are due: openings that died are given up, and of open
 *                                     ones that nobody told us about the provider is asked
 *
 * What is due stands in the database with the time of the next look, so that a crash loses nothing and several
 * processes do nothing twice.
 */
export interface DuePayments {
  stop(): Promise<void>
}

const POLL_MS = 15_000
const READ_LIMIT = 50
/** Calls under way at once: one provider that hangs must not hold up all others. */
const AT_ONCE = 25

/** Starts looking after payments and refunds. */
export function startDuePayments(database: Database, services: Services): DuePayments {
  const { timers } = services.platform
  let cancel: Cancel | undefined
  let running: Promise<void> | undefined
  let again = false
  let stopped = false

  function look(): void {
    if (stopped) return
    again = true
    running ??= run()
  }

  async function run(): Promise<void> {
    cancel?.()
    while (again && !stopped) {
      again = false
      const isMore = await seeToPayments(database, services).catch((error: unknown) => {
        services.log.error({ err: error, job: 'due payments' }, 'a job failed')
        return false
      })
      again ||= isMore
    }
    running = undefined
    if (!stopped) cancel = timers.after(POLL_MS, look)
  }

  const unsubscribe = services.paymentsDue.on(look)
  cancel = timers.after(POLL_MS, look)
  return {
    async stop() {
      stopped = true
      unsubscribe()
      cancel?.()
      await running
    },
  }
}

/** Sees to a bounded number of what is due now; answers whether there may be more. */
export async function seeToPayments(database: Database, services: Services): Promise<boolean> {
  const nowMs = services.platform.clock.wall()
  const refunds = await dueRefunds(database.reads, nowMs, READ_LIMIT)
  const payments = await duePayments(database.reads, nowMs, READ_LIMIT)
  const tasks = [...refunds.map((refund) => () => sendDue(refund, database, services)), ...payments.map((payment) => () => lookAt(payment, database, services))]
  let failed = false
  for (let i = 0; i < tasks.length; i += AT_ONCE) {
    const results = await Promise.allSettled(tasks.slice(i, i + AT_ONCE).map((task) => task()))
    for (const result of results) {
      if (result.status === 'fulfilled') continue
      services.log.error({ err: result.reason as unknown, job: 'due payments' }, 'a job failed')
      failed = true
    }
  }
  return !failed && (refunds.length === READ_LIMIT || payments.length === READ_LIMIT)
}

async function sendDue(refund: RefundRow, database: Database, services: Services): Promise<void> {
  await sendRefund(taskRunner(refundPayment, refund.tenant as Tenant, database, services), refund.refund_id)
}

async function lookAt(payment: PaymentRow, database: Database, services: Services): Promise<void> {
  const run = taskRunner(processPayment, payment.tenant as Tenant, database, services)
  if (payment.state === 'asking') return void (await run.step((call) => giveUp(call, payment.payment_id)))
  const checks = payment.checks + 1
  const minutes = CHECK_MINUTES[checks]
  const next = { checks, due_ms: minutes === undefined ? null : payment.created_ms + minutes * 60_000 }
  const claimed = await database.write((db) => updatePayment(db, payment, next))
  if (!claimed || claimed.provider_ref === null) return
  try {
    const notice = await connectionOf(await readConfig(database.reads, payment.config_id), services).findSession(claimed.provider_ref)
    if (notice) await run.step((call) => applyNotice(call, payment.payment_id, notice))
  } catch (error) {
    if (!(error instanceof ProviderFault)) throw error
  }
}
