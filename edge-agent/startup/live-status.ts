import type { Cancel, Timers } from '../../policy/platform.ts'

/** Minimum interval between two status events, ms. */
const STATUS_EVERY_MS = 100

/** Publishes the agent's status to the pages after changes. */
export class LiveStatus {
  readonly #timers: Timers
  readonly #publish: () => void
  #cancel: Cancel | undefined
  #isStopped = false

  constructor(timers: Timers, publish: () => void) {
    this.#timers = timers
    this.#publish = publish
  }

  get isStopped(): boolean {
    return this.#isStopped
  }

  changed(): void {
    if (this.#isStopped) return
    this.#cancel ??= this.#timers.after(STATUS_EVERY_MS, () => {
      this.#cancel = undefined
      this.#publish()
    })
  }

  stop(): void {
    this.#isStopped = true
    this.#cancel?.()
  }
}
