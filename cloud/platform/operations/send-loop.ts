import { setMaxListeners } from 'node:events'
import { pause, type Cancel } from '../../../policy/platform.ts'
import { logJobFailure } from '../foundation/log.ts'
import type { Services } from './operation.ts'

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

export interface SendLoopOptions {
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
