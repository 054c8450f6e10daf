import type { Cancel, Platform } from '../../policy/platform.ts'

/** Time in which a device may recover before the agent reports its fault, ms: a restarted driver needs less. */
const SETTLE_MS = 1_000
/** Minimum time between two reports, ms. A device with a loose plug changes its state several times a second. */
const EVERY_MS = 5_000

/** Reports changes of the devices to the cloud. Merges several changes into one report, and limits the rate. */
export class StateReports {
  readonly #platform: Pick<Platform, 'timers' | 'clock'>
  readonly #report: () => void
  #lastMs = -EVERY_MS
  #due: Cancel | undefined
  #isStopped = false

  constructor(platform: Pick<Platform, 'timers' | 'clock'>, report: () => void) {
    this.#platform = platform
    this.#report = report
  }

  changed(): void {
    if (this.#isStopped) return
    const { timers, clock } = this.#platform
    const waitMs = Math.max(SETTLE_MS, this.#lastMs + EVERY_MS - clock.elapsed())
    this.#due ??= timers.after(waitMs, () => {
      this.#due = undefined
      this.#lastMs = clock.elapsed()
      this.#report()
    })
  }

  stop(): void {
    this.#isStopped = true
    this.#due?.()
  }
}
