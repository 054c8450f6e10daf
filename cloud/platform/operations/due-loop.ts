import type { Cancel } from '../../../policy/platform.ts'
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

export interface DueLoopOptions {
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
