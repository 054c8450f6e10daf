import { setMaxListeners } from 'node:events'
import { pause, type Cancel } from '../../../policy/platform.ts'
import { logJobFailure } from '../foundation/log.ts'
import type { Services } from './operation.ts'
import type { Notifier } from './notifier.ts'

/**
 * Processes work at its due time. The loop calls `processDue` at the next due time, after a commit that changed due
 * work, and at least every `pollMs`. The database contains the due times, so a crash loses no work. The transaction of
 * each piece of work checks that the piece is still due, so only one of several processes does this work.
 */
export interface DueLoop {
  /** Starts no more work. Resolves when running work has ended. */
  stop(): Promise<void>
}

interface DueLoopOptions {
  /** Name of the loop in log lines. */
  readonly name: string
  /** Notifies the loop after commits that may have added due work. */
  readonly changed: Pick<Notifier, 'subscribe'>
  /** Maximum time between two checks, ms. Other processes may add work, and an administrator may set the clock. */
  readonly pollMs: number
  /**
   * Processes a limited number of due pieces of work. Resolves to the time until the next piece is due, ms; 0 or less
   * if more are due now.
   */
  processDue(): Promise<number>
}

/** Starts the loop with an immediate check. */
export function startDueLoop(
  { platform, log }: Services,
  { name, changed, pollMs, processDue }: DueLoopOptions,
): DueLoop {
  let cancel: Cancel | undefined
  let running: Promise<void> | undefined
  let again = false
  let stopped = false

  function wake(): void {
    if (stopped) return
    again = true
    running ??= run()
  }

  async function run(): Promise<void> {
    let waitMs = 0
    while (again || waitMs <= 0) {
      if (stopped) return
      again = false
      cancel?.()
      waitMs = await processDue().catch((error: unknown) => {
        logJobFailure(log, error, name)
        return pollMs
      })
    }
    // There must be no `await` between the loop's last check and this line. Otherwise a notification could be lost.
    running = undefined
    if (!stopped) cancel = platform.timers.after(Math.min(waitMs, pollMs), wake)
  }

  const unsubscribe = changed.subscribe(wake)
  wake()
  return {
    async stop() {
      stopped = true
      unsubscribe()
      cancel?.()
      await running
      cancel?.()
    },
  }
}

/**
 * Runs tasks in groups of `atOnce` and logs failures; a failure stops no other task. Resolves to true if all
 * succeeded.
 */
export async function runConcurrently(
  tasks: readonly (() => Promise<void>)[],
  atOnce: number,
  { log }: Services,
  name: string,
): Promise<boolean> {
  let good = true
  for (let i = 0; i < tasks.length; i += atOnce) {
    const results = await Promise.allSettled(tasks.slice(i, i + atOnce).map((task) => task()))
    for (const result of results) {
      if (result.status === 'fulfilled') continue
      logJobFailure(log, result.reason, name)
      good = false
    }
  }
  return good
}

/**
 * Loop that sends webhooks and push notices. Each check calls `sendDue`, which leases due deliveries and starts an
 * attempt for each in the background. The end of an attempt causes the next check. Because of the leases, several
 * processes may run the loop on one database.
 */
export interface SendLoop {
  /** Starts a check at once. */
  wake(): void
  /** Starts no more attempts, waits up to 5 s for running attempts, then aborts them. */
  stop(): Promise<void>
}

/** The running attempts. */
export interface Attempts {
  /** Number of running attempts. */
  readonly size: number
  /** Number of running attempts that use a slot of this name. */
  slotsInUse(name: string): number
  /** Starts an attempt in the background. The attempt uses one slot of each name until it ends. */
  start(names: readonly string[], about: object, work: (stop: AbortSignal) => Promise<void>): void
}

interface SendLoopOptions {
  /** Name of the loop in log lines, such as `webhooks`. */
  readonly name: string
  /** Maximum number of running attempts. */
  readonly maxAttempts: number
  readonly platform: Services['platform']
  getServices(): Services
  /**
   * Starts attempts for due deliveries, within the limits. Resolves to the time until the next check, ms; 0 if more
   * may be due now.
   */
  sendDue(attempts: Attempts): Promise<number>
}

/** Maximum time between two checks, ms, because other processes enqueue deliveries, too. */
export const POLL_MS = 1_000
const STOP_WITHIN_MS = 5_000

/** Starts the loop with an immediate check. A failed check is logged and repeated. */
export function startSendLoop({ name, maxAttempts, platform, getServices, sendDue }: SendLoopOptions): SendLoop {
  const stopping = new AbortController()
  setMaxListeners(maxAttempts + 1, stopping.signal)
  const running = new Set<Promise<void>>()
  const slots = new Map<string, number>()
  let checking: Promise<void> | undefined
  let again = false
  let stopped = false
  let cancel: Cancel | undefined

  function wake(): void {
    if (stopped) return
    again = true
    checking ??= checkAll().finally(() => {
      checking = undefined
      if (again) wake()
    })
  }

  async function checkAll(): Promise<void> {
    cancel?.()
    let nextMs = POLL_MS
    while (again && !stopped) {
      again = false
      try {
        nextMs = await sendDue(attempts)
      } catch (error) {
        nextMs = POLL_MS
        logJobFailure(getServices().log, error, name)
      }
      again ||= nextMs === 0
    }
    if (!stopped) cancel = platform.timers.after(Math.min(nextMs, POLL_MS), wake)
  }

  function occupy(names: readonly string[], change: 1 | -1): void {
    for (const each of names) {
      const now = (slots.get(each) ?? 0) + change
      if (now > 0) slots.set(each, now)
      else slots.delete(each)
    }
  }

  const attempts: Attempts = {
    get size() {
      return running.size
    },
    slotsInUse: (each) => slots.get(each) ?? 0,
    start(names, about, work) {
      occupy(names, 1)
      const run = work(stopping.signal)
        .catch((error: unknown) =>
          getServices().log.error({ err: error, ...about }, `${name}: an attempt was not recorded and is repeated`),
        )
        .finally(() => {
          running.delete(run)
          occupy(names, -1)
          wake()
        })
      running.add(run)
    },
  }

  wake()
  return {
    wake,
    async stop() {
      stopped = true
      cancel?.()
      await checking
      const limit = new AbortController()
      const all = Promise.all(running)
      await Promise.race([all, pause(platform.timers, STOP_WITHIN_MS, limit.signal).catch(() => undefined)])
      limit.abort()
      stopping.abort()
      await Promise.all(running)
    },
  }
}
