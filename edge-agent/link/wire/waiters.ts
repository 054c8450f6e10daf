import type { Timers } from '../../../policy/platform.ts'

/** Callers that wait for a condition, each with a time limit. */
export class Waiters {
  readonly #timers: Timers
  readonly #checks = new Set<() => void>()

  constructor(timers: Timers) {
    this.#timers = timers
  }

  /** Resolves when `checkAll` finds that `isOver` returns true, or after `limitMs`. Never rejects. */
  wait(limitMs: number, isOver: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        cancel()
        this.#checks.delete(check)
        resolve()
      }
      const check = () => void (isOver() && end())
      const cancel = this.#timers.after(limitMs, end)
      this.#checks.add(check)
    })
  }

  /** Checks every condition again. */
  checkAll(): void {
    for (const check of this.#checks) check()
  }
}
