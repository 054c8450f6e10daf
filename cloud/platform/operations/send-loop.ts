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
 * Loop that sends webhooks, push notices and refunds. Each check calls `sendDue`, which leases due deliveries and starts an
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
  /** Names of which at least so many slots are in use. */
  namesWith(atLeast: number): string[]
  /** Starts an attempt in the background. The attempt uses one slot of each name until it ends. */
  start(names: readonly string[], about: object, work: (stop: AbortSignal) => Promise<void>): void
}

interface SendLoopOptions {
  /** Name of the loop in log lines, such as `webhooks`. */
  readonly name: string
  /** Maximum number of running attempts. */
  readonly maxAttempts: number
  /** Maximum time between two checks, ms, because other processes enqueue work, too. Default: `POLL_MS`. */
  readonly pollMs?: number
  readonly platform: Services['platform']
  getServices(): Services
  /**
   * Starts attempts for due deliveries, within the limits. Resolves to the time until the next check, ms; 0 if more
   * may be due now.
   */
  sendDue(attempts: Attempts): Promise<number>
}

/** Maximum time between two checks for deliveries, ms. */
export const POLL_MS = 1_000
const STOP_WITHIN_MS = 5_000

/** Starts the loop with an immediate check. A failed check is logged and repeated. */
export function startSendLoop({
  name,
  maxAttempts,
  pollMs = POLL_MS,
  platform,
  getServices,
  sendDue,
}: SendLoopOptions): SendLoop {
  const stopping = new AbortController()
  setMaxListeners(maxAttempts + 1, stopping.signal)
  const running = new Set<Promise<void>>()
  const slots = new Slots()
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
    let nextMs = pollMs
    while (again && !stopped) {
      again = false
      try {
        nextMs = await sendDue(attempts)
      } catch (error) {
        nextMs = pollMs
        logJobFailure(getServices().log, error, name)
      }
      again ||= nextMs === 0
    }
    if (!stopped) cancel = platform.timers.after(Math.min(nextMs, pollMs), wake)
  }

  const attempts: Attempts = {
    get size() {
      return running.size
    },
    slotsInUse: (each) => slots.inUse(each),
    namesWith: (atLeast) => slots.namesWith(atLeast),
    start(names, about, work) {
      slots.occupy(names, 1)
      const run = work(stopping.signal)
        .catch((error: unknown) =>
          getServices().log.error({ err: error, ...about }, `${name}: an attempt was not recorded and is repeated`),
        )
        .finally(() => {
          running.delete(run)
          slots.occupy(names, -1)
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

/** Numbers of slots that are in use, by name. */
class Slots {
  readonly #inUse = new Map<string, number>()

  inUse(name: string): number {
    return this.#inUse.get(name) ?? 0
  }

  namesWith(atLeast: number): string[] {
    return [...this.#inUse].flatMap(([name, inUse]) => (inUse >= atLeast ? [name] : []))
  }

  occupy(names: readonly string[], change: 1 | -1): void {
    for (const name of names) {
      const now = this.inUse(name) + change
      if (now > 0) this.#inUse.set(name, now)
      else this.#inUse.delete(name)
    }
  }
}
