import { newId } from '../../policy/ids.ts'
import type { Services } from '../operations/operation.ts'
import { POLL_MS, startSendLoop, type Attempts, type SendLoop } from '../operations/send-loop.ts'
import type { Database } from '../persistence/database.ts'
import { attempt } from './attempt.ts'
import { isDue, lease, reschedule, readPending, type Job, type PendingAccount } from './queue.ts'
import { record } from './record.ts'

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
