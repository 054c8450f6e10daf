import { setMaxListeners } from 'node:events'
import { pause, type Cancel } from '../../policy/platform.ts'
import { logJobFailure } from '../foundation/log.ts'
import type { Services } from './operation.ts'

/**
 *   wake ─▶ look: lease what is due ─▶ start: each attempt in the background ─▶ wake
 *
 * The part that webhooks and push notices have in common. Any number of processes may run such a loop on one database,
 * because `look` leases what it sends.
 */
export interface SendLoop {
  /** There may be something to send: looks at once. */
  wake(): void
  /** Starts nothing more, waits up to 5 s for attempts under way, then aborts them. */
  stop(): Promise<void>
}

/** The attempts under way. */
export interface Attempts {
  /** How many there are. */
  readonly size: number
  /** How many of them take a place of this name. */
  slotsInUse(name: string): number
  /**
   * Starts one in the background. It takes a place of each name until it ends.
   *
   * @param about Fields of the log line if `work` rejects.
   */
  start(names: readonly string[], about: object, work: (stop: AbortSignal) => Promise<void>): void
}

export interface SendLoopOptions {
  /** What logs call the loop, such as `webhooks`. */
  readonly name: string
  /** Most attempts at once. */
  readonly maxAttempts: number
  readonly platform: Services['platform']
  getServices(): Services
  /** Sends what is due and fits. Resolves to the ms until the next look; 0 if there may be more now. */
  sendDue(attempts: Attempts): Promise<number>
}

/** Longest time between two looks, ms: other processes enqueue, too. */
export const POLL_MS = 1_000
const STOP_WITHIN_MS = 5_000

/** Starts looking, at once and then again and again. A look that fails is logged and repeated. */
export function startSendLoop({ name, maxAttempts, platform, getServices, sendDue }: SendLoopOptions): SendLoop {
  const stopping = new AbortController()
  setMaxListeners(maxAttempts + 1, stopping.signal)
  const running = new Set<Promise<void>>()
  const places = new Map<string, number>()
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
      const now = (places.get(each) ?? 0) + change
      if (now > 0) places.set(each, now)
      else places.delete(each)
    }
  }

  const attempts: Attempts = {
    get size() {
      return running.size
    },
    slotsInUse: (each) => places.get(each) ?? 0,
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
      await looking
      const limit = new AbortController()
      const all = Promise.all(running)
      await Promise.race([all, pause(platform.timers, STOP_WITHIN_MS, limit.signal).catch(() => undefined)])
      limit.abort()
      stopping.abort()
      await Promise.all(running)
    },
  }
}
