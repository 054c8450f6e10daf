import type { Cancel } from '../../policy/platform.ts'
import { logJobFailure } from '../foundation/log.ts'
import type { Services } from './operation.ts'
import type { Notifier } from './notifier.ts'

/**
 *   timer for the next due moment ─┐
 *   a commit that changed some ────┼──▶ look: read what is due, see to it ─▶ set the timer again
 *   every `pollMs` ────────────────┘
 *
 * Sees to what is due by time. What is due stands in the database with its time, and each piece is one guarded change: a crash loses
 * nothing, and of several processes one does it.
 */
export interface DueLoop {
  /** Resolves when what is under way has ended. */
  stop(): Promise<void>
}

export interface DueLoopOptions {
  /** What logs call it. */
  readonly name: string
  /** Given when there may be something new. */
  readonly changed: Pick<Notifier, 'subscribe'>
  /** Other processes change things too, and clocks are set: looks at least this often, ms. */
  readonly pollMs: number
  /** Sees to a bounded number of what is due; answers in how many ms the next is, 0 or less when more are. */
  processDue(): Promise<number>
}

/** Starts looking, at once and then again and again. */
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
    // At once, with no await between: a signal that comes now starts a new run.
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

/** Carries these out, so many at once; answers whether all went well. One that fails holds up no other. */
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
