import type { Services } from '../operations/operation.ts'
import type { Db } from '../persistence/database.ts'
import type { AttemptOutcome } from './attempt.ts'
import { deleteNotice, reschedule, RETRY_DELAYS_MS, type Job } from './queue.ts'
import { deleteSubscription } from './subscriptions.ts'

/** Number of consecutive undeliverable notices after which the cloud removes a subscription. */
export const FAILED_LIMIT = 20
/** Statuses after which a retry may succeed, in addition to 5xx. */
const LATER: ReadonlySet<number> = new Set([408, 425, 429])

/** Records the outcome of an attempt: the notice is delivered, rescheduled or discarded. */
export async function record(db: Db, job: Job, outcome: AttemptOutcome, services: Services): Promise<void> {
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
