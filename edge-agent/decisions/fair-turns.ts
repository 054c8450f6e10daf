import type { Platform } from '../../policy/platform.ts'

/** Longest pause between two turns, ms. */
const LONGEST_PAUSE_MS = 250

/**
 * Gives out turns of the event loop: one at a time, each device by turns, and other work of the agent between them. A
 * decision about a receipt may take a tenth of a second, and one program may send hundreds at once.
 */
export class FairTurns {
  readonly #platform: Pick<Platform, 'clock' | 'timers'>
  /** Waiting turns by device. The first device is next. */
  readonly #waiting = new Map<string, (() => void)[]>()
  #isBusy = false

  constructor(platform: Pick<Platform, 'clock' | 'timers'>) {
    this.#platform = platform
  }

  /** Resolves when it is the turn of the device: at once if none waits. */
  next(deviceId: string): Promise<void> {
    return new Promise((resolve) => {
      const ofDevice = this.#waiting.get(deviceId)
      if (ofDevice) ofDevice.push(resolve)
      else this.#waiting.set(deviceId, [resolve])
      if (!this.#isBusy) this.#run()
    })
  }

  #run(): void {
    const [first] = this.#waiting
    this.#isBusy = first !== undefined
    if (!first) return
    const [deviceId, turns] = first
    const resolve = turns.shift()
    this.#waiting.delete(deviceId)
    if (turns.length > 0) this.#waiting.set(deviceId, turns)
    const { clock, timers } = this.#platform
    const fromMs = clock.elapsed()
    resolve?.()
    // As much time for other work as this turn took. The machine may have slept meanwhile.
    timers.after(0, () => void timers.after(Math.min(clock.elapsed() - fromMs, LONGEST_PAUSE_MS), () => this.#run()))
  }
}
