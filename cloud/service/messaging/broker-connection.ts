import { logJobFailure, type Log } from '../../platform/foundation/log.ts'

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

/** A connection of the cloud to an outside broker. If the connection is lost, the cloud opens a new one. */
export interface BrokerConnection {
  /** Publishes with QoS 1, without confirmation. */
  publish(topic: string, payload: string, options: { retain: boolean }): void
  /** Resolves to the granted QoS of each filter, or 128 for a refused one. */
  subscribe(filters: readonly string[]): Promise<readonly number[]>
  close(): void
}

interface BrokerConnectionOptions {
  url: string
  clientId: string
  username?: string
  password?: string
  /** Certificates of a private CA, PEM. Default: the public CAs of the machine. */
  ca?: string
  onMessage(topic: string, payload: string): void
  /** Called once, when the connection has closed. */
  onClosed(why: string): void
}

/** Opens a connection, or rejects. The real implementation is in bin/; tests have their own. */
export type OpenBrokerConnection = (options: BrokerConnectionOptions, timeoutMs: number) => Promise<BrokerConnection>
