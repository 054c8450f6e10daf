import type { Timers } from '../../../policy/platform.ts'

/** Callers that wait for something, each for so long at most. */
export class Waiters {
  readonly #timers: Timers
  readonly #looks = new Set<() => void>()

  constructor(timers: Timers) {
    this.#timers = timers
  }

  /** Resolves when `isOver`, as seen by `look`, or after `limitMs`. Never rejects. */
  wait(limitMs: number, isOver: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        cancel()
        this.#looks.delete(look)
        resolve()
      }
      const look = () => void (isOver() && end())
      const cancel = this.#timers.after(limitMs, end)
      this.#looks.add(look)
    })
  }

  /** Something has changed. */
  look(): void {
    for (const look of this.#looks) look()
  }
}
