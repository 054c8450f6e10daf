import { setMaxListeners } from 'node:events'
import { newId } from '../../policy/ids.ts'
import { pause, type Cancel } from '../../policy/platform.ts'
import { logJobFailure } from '../log.ts'
import type { Services } from '../operations/operation.ts'
import type { Database } from '../persistence/database.ts'
import { attempt } from './attempt.ts'
import { isDue, lease, putBack, readWaiting, type Job, type Waiting } from './queue.ts'
import { record } from './record.ts'

/** How often it looks by itself, ms: for notices of other processes. */
const LOOK_MS = 1_000
/** Attempts at once: of all, and of one account. */
const OVERALL = 64
const PER_ACCOUNT = 8
/** How long a stop waits for what is being sent, ms. */
const STOP_WITHIN_MS = 5_000

export interface PushSender {
  /** There may be a new notice: looks at once. */
  wake(): void
  /** Begins nothing more and waits, not long, for what is being sent; the next process sends what was cut off. */
  stop(): Promise<void>
}

/**
 * Sends the notices that wait. Any number of processes may do this on one database. Whoever has fewer places comes first: an account
 * with slow receivers holds up itself alone.
 */
export function startPushSender(
  database: Database,
  getServices: () => Services,
  platform: Services['platform'],
): PushSender {
  const stopping = new AbortController()
  setMaxListeners(OVERALL + 1, stopping.signal)
  const sending = new Set<Promise<void>>()
  /** Places taken by each account. */
  const busy = new Map<string, number>()
  let looking: Promise<void> | undefined
  let again = false
  let stopped = false
  let cancel: Cancel | undefined

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
    while (again && !stopped) {
      again = false
      try {
        await look()
      } catch (error) {
        logJobFailure(getServices().log, error, 'push notices')
      }
    }
    if (!stopped) cancel = platform.timers.after(LOOK_MS, wake)
  }

  /** Sends what is due, as far as there are places. */
  async function look(): Promise<void> {
    const nowMs = platform.clock.wall()
    const wanted = choose((await readWaiting(database.reads)).filter(({ due_ms }) => isDue(due_ms, nowMs)))
    if (wanted.length === 0) return
    const leaseId = newId('lea', platform)
    const jobs = await database.write(async (db) => {
      const taken: Job[] = []
      for (const { tenant, places } of wanted) taken.push(...(await lease(db, tenant, leaseId, places, nowMs)))
      return taken
    })
    for (const job of jobs) send(job)
    if (jobs.length > 0) again = true
  }

  /** How many places each account gets. */
  function choose(due: readonly Waiting[]): { tenant: string; places: number }[] {
    let free = OVERALL - sending.size
    return due
      .map(({ tenant }) => ({ tenant, has: busy.get(tenant) ?? 0 }))
      .sort((a, b) => a.has - b.has)
      .flatMap(({ tenant, has }) => {
        const places = Math.min(PER_ACCOUNT - has, free)
        if (places <= 0) return []
        free -= places
        return [{ tenant, places }]
      })
  }

  function occupy(tenant: string, places: 1 | -1): void {
    const now = (busy.get(tenant) ?? 0) + places
    if (now > 0) busy.set(tenant, now)
    else busy.delete(tenant)
  }

  function send(job: Job): void {
    const { tenant, subscription_id: subscriptionId } = job.subscription
    occupy(tenant, 1)
    const run = sendOne(job)
      .catch((error: unknown) =>
        getServices().log.error(
          { err: error, subscriptionId },
          'an attempt at a push notice was not recorded: it is made again',
        ),
      )
      .finally(() => {
        sending.delete(run)
        occupy(tenant, -1)
        wake()
      })
    sending.add(run)
  }

  async function sendOne(job: Job): Promise<void> {
    const services = getServices()
    const outcome = await attempt(job, services, stopping.signal)
    const wasCut = stopping.signal.aborted && outcome.status === null
    await database.write((db) =>
      wasCut ? putBack(db, job, platform.clock.wall(), job.delivery.attempts) : record(db, job, outcome, services),
    )
  }

  wake()
  return {
    wake,
    async stop() {
      stopped = true
      cancel?.()
      await looking
      const limit = new AbortController()
      await Promise.race([
        Promise.all(sending),
        pause(platform.timers, STOP_WITHIN_MS, limit.signal).catch(() => undefined),
      ])
      limit.abort()
      stopping.abort()
      await Promise.all(sending)
    },
  }
}
