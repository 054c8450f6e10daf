import { setMaxListeners } from 'node:events'
import { newId } from '../../policy/ids.ts'
import { pause, type Cancel } from '../../policy/platform.ts'
import { logJobFailure } from '../log.ts'
import type { Services } from '../operations/operation.ts'
import type { Database } from '../persistence/database.ts'
import { attempt } from './attempt.ts'
import { bringForward, lease, readWaiting, release, type Job, type Waiting } from './lease.ts'
import { planDeliveries, pruneDeliveries } from './plan.ts'
import { record } from './record.ts'

/** How often it looks by itself, ms: for events of other processes and those that wake nobody. */
const LOOK_MS = 1_000
const PRUNE_MS = 3_600_000
/** Attempts at once: of one webhook, of one account, of one webhook that nothing arrives at, of all, and of all that nothing arrives at. */
const PER_WEBHOOK = 4
const PER_ACCOUNT = 48
const PER_FAILING = 1
const OVERALL = 64
const OVERALL_FAILING = 32
/** How long a stop waits for what is being sent, ms. */
const STOP_WITHIN_MS = 5_000

export interface Dispatcher {
  /** There may be something new: looks at once. */
  wake(): void
  /** Begins nothing more and waits, not long, for what is being sent; what is cut off is sent again by the next process. */
  stop(): Promise<void>
}

/**
 *   business transaction ─ outbox_event ─▶ plan ─ webhook_delivery ─▶ lease ─▶ attempt ─▶ record
 *                                          (one transaction each; no transaction around the attempt)
 *
 * Any number of processes may do this on one database. A receiver that is slow or dead takes up its own few places and no
 * others; those that nothing arrives at share half of all places. Whoever has fewer places comes first, so that an account with
 * many slow receivers holds up itself alone.
 */
export function startDispatcher(
  database: Database,
  getServices: () => Services,
  platform: Services['platform'],
): Dispatcher {
  const stopping = new AbortController()
  setMaxListeners(OVERALL + 1, stopping.signal)
  const sending = new Set<Promise<void>>()
  /** Places taken by each webhook, and by each account on each of its sides. */
  const busy = new Map<string, number>()
  /** Places taken by webhooks that nothing arrives at. */
  let failing = 0
  let looking: Promise<void> | undefined
  let again = false
  let stopped = false
  let cancel: Cancel | undefined
  let keptHouseMs = platform.clock.elapsed()

  function wake(): void {
    if (stopped) return
    again = true
    looking ??= lookAll().finally(() => {
      looking = undefined
      if (again) wake()
    })
  }

  async function lookAll(): Promise<void> {
    cancel?.()
    let nextMs = LOOK_MS
    while (again && !stopped) {
      again = false
      try {
        nextMs = await look()
      } catch (error) {
        nextMs = LOOK_MS
        logJobFailure(getServices().log, error, 'webhooks')
      }
    }
    if (!stopped) cancel = platform.timers.after(nextMs, wake)
  }

  /** Sends what is due; answers in how many ms to look again. */
  async function look(): Promise<number> {
    if (await planDeliveries(database, platform)) again = true
    const waiting = await readWaiting(database.reads)
    const nowMs = platform.clock.wall()
    const leaseId = newId('lea', platform)
    const wanted = choose(waiting.filter((w) => w.due_ms <= nowMs))
    if (wanted.length > 0) {
      const jobs = await database.write(async (db) => {
        const taken: { job: Job; isFailing: boolean }[] = []
        for (const { webhookId, places, isFailing } of wanted) {
          for (const job of await lease(db, webhookId, leaseId, places, nowMs)) taken.push({ job, isFailing })
        }
        return taken
      })
      for (const { job, isFailing } of jobs) send(job, isFailing)
      // Places were held for more than was there: others may have them now.
      if (jobs.length > 0) again = true
    }
    // What is over by a clock that has just jumped may not be over at all.
    if (platform.clock.elapsed() - keptHouseMs >= PRUNE_MS && getServices().authority.clock.doubt() === null) {
      keptHouseMs = platform.clock.elapsed()
      // Not the time of above: the machine may have slept since.
      const keptAtMs = platform.clock.wall()
      await pruneDeliveries(database, keptAtMs)
      await database.write((db) => bringForward(db, keptAtMs))
    }
    const later = waiting.filter((w) => w.due_ms > nowMs).map((w) => w.due_ms - nowMs)
    return Math.min(LOOK_MS, ...later)
  }

  /** How many places each webhook gets: those that work first, each no more than its own. */
  function choose(due: readonly Waiting[]): { webhookId: string; places: number; isFailing: boolean }[] {
    let free = OVERALL - sending.size
    let freeFailing = OVERALL_FAILING - failing
    const taken = new Map<string, number>()
    const ofAccount = ({ tenant }: Waiting) => (busy.get(tenant ?? '') ?? 0) + (taken.get(tenant ?? '') ?? 0)
    const chosen: { webhookId: string; places: number; isFailing: boolean }[] = []
    for (const each of due
      .map((waiting) => ({ ...waiting, has: ofAccount(waiting) }))
      .sort((a, b) => a.is_failing - b.is_failing || a.has - b.has)) {
      const { webhook_id: webhookId, is_failing, tenant } = each
      const isFailing = is_failing === 1
      const own = (isFailing ? PER_FAILING : PER_WEBHOOK) - (busy.get(webhookId) ?? 0)
      const places = Math.min(own, PER_ACCOUNT - ofAccount(each), free, isFailing ? freeFailing : free)
      if (places <= 0) continue
      free -= places
      if (isFailing) freeFailing -= places
      taken.set(tenant ?? '', (taken.get(tenant ?? '') ?? 0) + places)
      chosen.push({ webhookId, places, isFailing })
    }
    return chosen
  }

  function occupy(name: string, places: 1 | -1): void {
    const now = (busy.get(name) ?? 0) + places
    if (now > 0) busy.set(name, now)
    else busy.delete(name)
  }

  function send(job: Job, isFailing: boolean): void {
    const { webhook_id: webhookId, tenant } = job.webhook
    for (const name of [webhookId, tenant]) occupy(name, 1)
    if (isFailing) failing++
    const run = sendOne(job)
      .catch((error: unknown) =>
        getServices().log.error(
          { err: error, webhookId },
          'an attempt at a webhook was not recorded: it is made again',
        ),
      )
      .finally(() => {
        sending.delete(run)
        for (const name of [webhookId, tenant]) occupy(name, -1)
        if (isFailing) failing--
        wake()
      })
    sending.add(run)
  }

  async function sendOne(job: Job): Promise<void> {
    const services = getServices()
    const outcome = await attempt(job, services, stopping.signal)
    const wasCut = stopping.signal.aborted && outcome.status === null
    await database.write((db) =>
      wasCut ? release(db, job, platform.clock.wall()) : record(db, job, outcome, services),
    )
  }

  wake()
  return {
    wake,
    async stop() {
      stopped = true
      cancel?.()
      await looking
      const all = Promise.all(sending)
      const limit = new AbortController()
      await Promise.race([all, pause(platform.timers, STOP_WITHIN_MS, limit.signal).catch(() => undefined)])
      limit.abort()
      stopping.abort()
      await Promise.all(sending)
    },
  }
}
