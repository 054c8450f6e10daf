import { mayHave } from '../../platform/foundation/shared-slots.ts'
import type { Tenant } from '../../platform/foundation/caller.ts'
import { startSendLoop, type Attempts, type SendLoop } from '../../platform/operations/send-loop.ts'
import type { Services } from '../../platform/operations/operation.ts'
import type { Database } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { applyNotice } from './apply-notice.ts'
import { connectionOf } from './connection.ts'
import { CHECK_MINUTES, endUnopenedPayment } from './open-payment.ts'
import { processPayment } from './process-payment.ts'
import { ProviderFault } from './provider.ts'
import { duePayments, dueRefunds, readConfig, updatePayment, taskRunner } from './queries.ts'
import { refundPayment } from './refund-payment.ts'
import { sendRefund } from './send-refund.ts'

/**
 * A job that sends due refunds to the provider. The job also ends payments whose opening crashed, and queries the state
 * of open sessions for which no notification arrived.
 */

/** Maximum time between two checks, and minimum time between two attempts at one row, ms. */
const POLL_MS = 15_000
const READ_LIMIT = 50
/** Maximum number of concurrent requests, also of one account, because its provider may not answer. */
const AT_ONCE = 25
const AT_ONCE_OF_ACCOUNT = 5

/** A due refund or payment. */
interface Due {
  readonly id: string
  readonly tenant: string
  readonly due_ms: number | null
  readonly work: () => Promise<void>
}

/** Starts the job for payments and refunds. */
export function startDuePayments(database: Database, services: Services): Pick<SendLoop, 'stop'> {
  const { platform, paymentsDue } = services
  const tried = new Map<string, number>()
  const loop = startSendLoop({
    name: 'due payments',
    maxAttempts: AT_ONCE,
    pollMs: POLL_MS,
    platform,
    getServices: () => services,
    sendDue: (attempts) => startDue(database, services, attempts, tried),
  })
  const unsubscribe = paymentsDue.subscribe(() => loop.wake())
  return {
    async stop() {
      unsubscribe()
      await loop.stop()
    },
  }
}

/**
 * Starts due refunds and payments, as far as there is room. The end of each causes the next check. `tried`: when rows were
 * tried lately, so that one that nothing changes does not keep the job busy.
 */
async function startDue(
  database: Database,
  services: Services,
  attempts: Attempts,
  tried: Map<string, number>,
): Promise<number> {
  const nowMs = services.platform.clock.wall()
  for (const [row, atMs] of tried) if (Math.abs(nowMs - atMs) >= POLL_MS) tried.delete(row)
  for (const { id, tenant, due_ms, work } of await readDue(database, services, attempts)) {
    const row = `${id} ${due_ms ?? 0}`
    if (attempts.size >= AT_ONCE) break
    const has = attempts.slotsInUse(tenant)
    const most = mayHave({ ofOne: AT_ONCE_OF_ACCOUNT, total: AT_ONCE }, has, AT_ONCE - attempts.size)
    if (has >= most || attempts.slotsInUse(id) > 0 || tried.has(row)) continue
    tried.set(row, nowMs)
    attempts.start([tenant, id], { id }, work)
  }
  return POLL_MS
}

async function readDue(database: Database, services: Services, attempts: Attempts): Promise<readonly Due[]> {
  const nowMs = services.platform.clock.wall()
  const share = {
    limit: READ_LIMIT,
    ofAccount: AT_ONCE_OF_ACCOUNT,
    busy: attempts.namesWith(AT_ONCE_OF_ACCOUNT),
  }
  const refunds = await dueRefunds(database.reads, nowMs, share)
  const payments = await duePayments(database.reads, nowMs, share)
  return [
    ...refunds.map(({ refund_id: id, ...row }) => ({
      ...row,
      id,
      work: () => sendDueRefund(id, row.tenant, database, services),
    })),
    ...payments.map((row) => ({ ...row, id: row.payment_id, work: () => checkPayment(row, database, services) })),
  ]
}

async function sendDueRefund(id: string, tenant: string, database: Database, services: Services): Promise<void> {
  await sendRefund(taskRunner(refundPayment, tenant as Tenant, database, services), id)
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
