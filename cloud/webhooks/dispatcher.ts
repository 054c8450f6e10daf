import { newId } from '../../policy/ids.ts'
import { deletedBeforeMs } from '../foundation/keep-days.ts'
import type { Services } from '../operations/operation.ts'
import { POLL_MS, startSendLoop, type Attempts, type SendLoop } from '../operations/send-loop.ts'
import type { Database } from '../persistence/database.ts'
import { attempt } from './attempt.ts'
import { bringForward, lease, readPending, release, type Job, type PendingWebhook } from './lease.ts'
import { planDeliveries, pruneDeliveries } from './plan.ts'
import { record } from './record.ts'

const PRUNE_MS = 3_600_000
/**
 * Maximum numbers of running attempts: of one webhook, of one account, of one failing webhook, in total, and of all
 * failing webhooks.
 */
const PER_WEBHOOK = 4
const PER_ACCOUNT = 48
const PER_FAILING = 1
const OVERALL = 64
const OVERALL_FAILING = 32
/** Name of the slots that all failing webhooks share. */
const FAILING = 'failing'

/**
 * Starts the loop that delivers events (ADR 0031). Operations store events in `outbox_event`. The dispatcher creates
 * deliveries for new events, leases due deliveries, sends them and records the outcomes. Each of these steps is a
 * transaction of its own, but sending happens outside of transactions.
 *
 * A slow receiver uses only its own few slots, and failing webhooks share half of all slots. The account with the
 * fewest used slots comes first, so that slow receivers delay only deliveries of their own account.
 */
export function startDispatcher(
  database: Database,
  getServices: () => Services,
  platform: Services['platform'],
): SendLoop {
  let prunedMs = platform.clock.elapsed()
  return startSendLoop({ name: 'webhooks', maxAttempts: OVERALL, platform, getServices, sendDue })

  async function sendDue(attempts: Attempts): Promise<number> {
    let isMore = await planDeliveries(database, platform)
    const waiting = await readPending(database.reads)
    const nowMs = platform.clock.wall()
    const leaseId = newId('lea', platform)
    const wanted = choose(
      waiting.filter((w) => w.due_ms <= nowMs),
      attempts,
    )
    if (wanted.length > 0) {
      const jobs = await database.write(async (db) => {
        const taken: { job: Job; isFailing: boolean }[] = []
        for (const { webhookId, slots, isFailing } of wanted) {
          for (const job of await lease(db, webhookId, leaseId, slots, nowMs)) taken.push({ job, isFailing })
        }
        return taken
      })
      for (const { job, isFailing } of jobs) send(attempts, job, isFailing)
      // A webhook may have used fewer slots than `choose` assigned. The next check gives the rest to other webhooks.
      isMore ||= jobs.length > 0
    }
    await prune()
    const later = waiting.filter((w) => w.due_ms > nowMs).map((w) => w.due_ms - nowMs)
    return isMore ? 0 : Math.min(POLL_MS, ...later)
  }

  /**
   * Once an hour, deletes old deliveries and corrects due times that are too far in the future. Does nothing while the
   * clock is untrusted.
   */
  async function prune(): Promise<void> {
    if (platform.clock.elapsed() - prunedMs < PRUNE_MS || getServices().authority.clock.untrustedReason() !== null)
      return
    prunedMs = platform.clock.elapsed()
    const nowMs = platform.clock.wall()
    await pruneDeliveries(database, deletedBeforeMs(getServices().config.keepDays, 'events', nowMs))
    await database.write((db) => bringForward(db, nowMs))
  }

  function send(attempts: Attempts, job: Job, isFailing: boolean): void {
    const { webhook_id: webhookId, tenant } = job.webhook
    attempts.start([webhookId, tenant, ...(isFailing ? [FAILING] : [])], { webhookId }, async (stop) => {
      const services = getServices()
      const outcome = await attempt(job, services, stop)
      const wasCut = stop.aborted && outcome.status === null
      await database.write((db) =>
        wasCut ? release(db, job, platform.clock.wall()) : record(db, job, outcome, services),
      )
    })
  }
}

/** Distributes free slots to webhooks within their limits. Failing webhooks come last. */
function choose(
  due: readonly PendingWebhook[],
  attempts: Attempts,
): { webhookId: string; slots: number; isFailing: boolean }[] {
  let free = OVERALL - attempts.size
  let freeFailing = OVERALL_FAILING - attempts.slotsInUse(FAILING)
  const taken = new Map<string, number>()
  const ofAccount = ({ tenant }: PendingWebhook) => attempts.slotsInUse(tenant ?? '') + (taken.get(tenant ?? '') ?? 0)
  const chosen: { webhookId: string; slots: number; isFailing: boolean }[] = []
  for (const each of due
    .map((waiting) => ({ ...waiting, has: ofAccount(waiting) }))
    .sort((a, b) => a.is_failing - b.is_failing || a.has - b.has)) {
    const { webhook_id: webhookId, is_failing, tenant } = each
    const isFailing = is_failing === 1
    const own = (isFailing ? PER_FAILING : PER_WEBHOOK) - attempts.slotsInUse(webhookId)
    const slots = Math.min(own, PER_ACCOUNT - ofAccount(each), free, isFailing ? freeFailing : free)
    if (slots <= 0) continue
    free -= slots
    if (isFailing) freeFailing -= slots
    taken.set(tenant ?? '', (taken.get(tenant ?? '') ?? 0) + slots)
    chosen.push({ webhookId, slots, isFailing })
  }
  return chosen
}
