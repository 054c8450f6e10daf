import { pause, type Cancel, type Platform } from '../../policy/platform.ts'
import { budget, type Budget } from '../../policy/budget.ts'

/** Rate limit of polls. Each program with access to the broker can trigger polls. */
const POLLS = { most: 20, perSecond: 2, pauseMs: 500 }

export interface PollRequestsParts {
  platform: Pick<Platform, 'timers' | 'clock'>
  /** Aborted when the link stops. */
  stopping: AbortSignal
  /** Returns false if a postponed poll is no longer needed. */
  isNeeded(): boolean
}

/** Merges several requests into one poll, and limits the rate of polls. */
export class PollRequests {
  readonly #parts: PollRequestsParts
  readonly #budget: Budget
  #isRequested = false
  #wake: () => void = () => undefined
  #soon: Cancel | undefined

  constructor(parts: PollRequestsParts) {
    this.#parts = parts
    this.#budget = budget(parts.platform.clock, POLLS.most, POLLS.perSecond)
  }

  get isRequested(): boolean {
    return this.#isRequested
  }

  now(): void {
    this.#isRequested = true
    this.wake()
  }

  /**
   * Requests one poll after `ms`. Calls within that time share the poll. If `isNeeded` then returns false, the poll is
   * skipped.
   */
  within(ms: number): void {
    if (ms === 0) return this.now()
    this.#soon ??= this.#parts.platform.timers.after(ms, () => {
      this.#soon = undefined
      if (this.#parts.isNeeded()) this.now()
    })
  }

  /** Marks the start of a poll. Later requests are for the next poll. */
  begin(): void {
    this.#isRequested = false
  }

  /** Spends one poll of the rate limit. Returns false if no poll is left. */
  spend(): boolean {
    return this.#budget.spend()
  }

  /**
   * Spends one poll of the rate limit, or pauses if no poll is left. Therefore broker messages cannot make the agent
   * flood the cloud with polls.
   */
  async spendOrPause(): Promise<void> {
    const { platform, stopping } = this.#parts
    if (!this.spend()) await pause(platform.timers, POLLS.pauseMs, stopping).catch(() => undefined)
  }

  /** Waits for `ms`. Ends early if `wake` is called or the link stops. */
  async sleep(ms: number): Promise<void> {
    const { platform, stopping } = this.#parts
    const waking = new AbortController()
    const wake = () => waking.abort()
    this.#wake = wake
    stopping.addEventListener('abort', wake, { once: true })
    await pause(platform.timers, ms, waking.signal).catch(() => undefined)
    stopping.removeEventListener('abort', wake)
    this.#wake = () => undefined
  }

  /** Ends `sleep` early. */
  wake(): void {
    this.#wake()
  }

  stop(): void {
    this.#soon?.()
  }
}
