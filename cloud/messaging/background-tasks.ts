import { logJobFailure, type Log } from '../foundation/log.ts'

/** Work that no caller waits for. Its failures are logged. */
export class BackgroundTasks {
  readonly #log: () => Log
  readonly #work = new Set<Promise<void>>()

  constructor(log: () => Log) {
    this.#log = log
  }

  track(work: Promise<void>): Promise<void> {
    const done = work
      .catch((error: unknown) => logJobFailure(this.#log(), error, 'messages to agents'))
      .finally(() => this.#work.delete(done))
    this.#work.add(done)
    return done
  }

  /** Resolves when nothing is under way. */
  async settled(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work)
  }
}
