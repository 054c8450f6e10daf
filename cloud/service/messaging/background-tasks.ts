import { logJobFailure, type Log } from '../../platform/foundation/config.ts'

/** Tasks that no caller waits for. Failures are logged. */
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

  /** Resolves when no task runs. */
  async settled(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work)
  }
}
