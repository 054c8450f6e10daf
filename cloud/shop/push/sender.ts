import { newId } from '../../../policy/ids.ts'
import type { Services } from '../../platform/operations/operation.ts'
import { POLL_MS, startSendLoop, type Attempts, type SendLoop } from '../../platform/operations/send-loop.ts'
import type { Database, Db } from '../../platform/persistence/database.ts'
import { attempt, type AttemptOutcome } from './attempt.ts'
import {
  isDue,
  lease,
  reschedule,
  readPending,
  type Job,
  type PendingAccount,
  deleteNotice,
  RETRY_DELAYS_MS,
} from './queue.ts'
import { deleteSubscription } from './subscriptions.ts'

/** Number of consecutive undeliverable notices after which the cloud removes a subscription. */
const FAILED_LIMIT = 20
/** Statuses after which a retry may succeed, in addition to 5xx. */
const LATER: ReadonlySet<number> = new Set([408, 425, 429])

/** Records the outcome of an attempt: the notice is delivered, rescheduled or discarded. */
async function record(db: Db, job: Job, outcome: AttemptOutcome, services: Services): Promise<void> {
  const { status } = outcome
  const { subscription } = job
  if (status !== null && status >= 200 && status < 300) {
    if (await deleteNotice(db, job)) await countFailed(db, job, 0)
    return
  }
  if (isGone(subscription.kind, status)) {
    await deleteSubscription(db, subscription.subscription_id)
    return
  }
  const dueMs = nextAttempt(job, outcome)
  if (dueMs !== undefined) {
    await reschedule(db, job, dueMs, job.delivery.attempts + 1)
    return
  }
  if (!(await deleteNotice(db, job))) return
  const failed = subscription.failed_in_row + 1
  const about = { subscriptionId: subscription.subscription_id, status, error: outcome.error }
  if (failed < FAILED_LIMIT) {
    await countFailed(db, job, failed)
    services.log.warn(about, 'a push notice could not be delivered and was discarded')
  } else {
    await deleteSubscription(db, subscription.subscription_id)
    services.log.warn(about, `a push subscription was removed after ${FAILED_LIMIT} notices that did not arrive`)
  }
}

/**
 * True if the subscription no longer exists (RFC 8030 §7.3): 404 or 410 of a push service, 410 of a merchant's
 * endpoint.
 */
function isGone(kind: string, status: number | null): boolean {
  return status === 410 || (status === 404 && kind === 'web')
}

/** Time of the next attempt; undefined: none. */
function nextAttempt({ delivery }: Job, { atMs, status, retryAfterMs }: AttemptOutcome): number | undefined {
  const mayRetry = status === null || status >= 500 || LATER.has(status)
  const delayMs = RETRY_DELAYS_MS[delivery.attempts]
  if (!mayRetry || delayMs === undefined) return undefined
  const dueMs = atMs + Math.max(delayMs, retryAfterMs ?? 0)
  return dueMs < delivery.expires_ms ? dueMs : undefined
}

async function countFailed(db: Db, { subscription }: Job, failed: number): Promise<void> {
  if (subscription.failed_in_row === failed) return
  await db
    .updateTable('push_subscription')
    .set({ failed_in_row: failed })
    .where('subscription_id', '=', subscription.subscription_id)
    .execute()
}

/** Maximum number of running attempts: in total, and of one account. */
const OVERALL = 64
const PER_ACCOUNT = 8

/**
 * Sends queued push notices. The account with the fewest used slots comes first, so that slow receivers delay only
 * notices of their own account.
 */
export function startPushSender(
  database: Database,
  getServices: () => Services,
  platform: Services['platform'],
): SendLoop {
  return startSendLoop({ name: 'push notices', maxAttempts: OVERALL, platform, getServices, sendDue })

  async function sendDue(attempts: Attempts): Promise<number> {
    const nowMs = platform.clock.wall()
    const due = (await readPending(database.reads)).filter(({ due_ms }) => isDue(due_ms, nowMs))
    const wanted = choose(due, attempts)
    if (wanted.length === 0) return POLL_MS
    const leaseId = newId('lea', platform)
    const jobs = await database.write(async (db) => {
      const taken: Job[] = []
      for (const { tenant, slots } of wanted) taken.push(...(await lease(db, tenant, leaseId, slots, nowMs)))
      return taken
    })
    for (const job of jobs) {
      const { tenant, subscription_id: subscriptionId } = job.subscription
      attempts.start([tenant], { subscriptionId }, (stop) => sendOne(job, stop))
    }
    return jobs.length > 0 ? 0 : POLL_MS
  }

  async function sendOne(job: Job, stop: AbortSignal): Promise<void> {
    const services = getServices()
    const outcome = await attempt(job, services, stop)
    const wasCut = stop.aborted && outcome.status === null
    await database.write((db) =>
      wasCut ? reschedule(db, job, platform.clock.wall(), job.delivery.attempts) : record(db, job, outcome, services),
    )
  }
}

/** Distributes free slots to accounts. */
function choose(due: readonly PendingAccount[], attempts: Attempts): { tenant: string; slots: number }[] {
  let free = OVERALL - attempts.size
  return due
    .map(({ tenant }) => ({ tenant, has: attempts.slotsInUse(tenant) }))
    .sort((a, b) => a.has - b.has)
    .flatMap(({ tenant, has }) => {
      const slots = Math.min(PER_ACCOUNT - has, free)
      if (slots <= 0) return []
      free -= slots
      return [{ tenant, slots }]
    })
}
