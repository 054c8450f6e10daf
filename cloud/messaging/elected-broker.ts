import type { Cancel, Platform } from '../../policy/platform.ts'
import { logJobFailure, type Log } from '../foundation/log.ts'
import { BEAT_MS, BrokerLease, type LeaseParts } from './broker-lease.ts'
import type { Broker } from './embedded-broker.ts'

export interface ElectionParts extends LeaseParts {
  platform: Pick<Platform, 'clock' | 'timers'>
  log: Log
  /** True if the process is a worker of the same cloud, so that both exchange messages. */
  isSibling(processId: string): boolean
  /** Starts the embedded broker of this process. */
  open(): Promise<Broker>
  /** Called with the broker after this process has opened it, and with undefined before this process closes it. */
  onChange(broker: Broker | undefined): void
}

/**
 * The embedded broker of several processes on one database. One process holds the broker. If that process ends, another
 * process opens its own broker on the same port.
 */
export class ElectedBroker {
  readonly #parts: ElectionParts
  readonly #lease: BrokerLease
  #broker: Broker | undefined
  #cancel: Cancel | undefined
  #running: Promise<void> | undefined
  #again = false
  #stopped = false
  #hasWarned = false

  constructor(parts: ElectionParts) {
    this.#parts = parts
    this.#lease = new BrokerLease(parts)
  }

  /** Joins the election. Rejects if this process is elected and cannot open its broker. */
  async start(): Promise<void> {
    await this.#check()
    this.#next()
  }

  /**
   * True if this or another process has a broker for agents. Also true while this process stops, because another
   * process then opens a broker.
   */
  isListening(): boolean {
    // A process that stops still answers its last requests. These responses must not report a failure of the cloud.
    if (this.#stopped) return true
    return this.#broker?.isListening() ?? this.#lease.isHeldElsewhere()
  }

  /** Checks at once, because another process has ended. */
  wake(): void {
    if (this.#stopped) return
    if (this.#running) return void (this.#again = true)
    this.#cancel?.()
    this.#running = this.#check()
      .catch((error: unknown) => logJobFailure(this.#parts.log, error, 'election of the broker'))
      .finally(() => {
        this.#running = undefined
        if (!this.#again) return this.#next()
        this.#again = false
        this.wake()
      })
  }

  /** Closes the broker of this process and frees the lease. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancel?.()
    await this.#running
    if (this.#broker === undefined) return
    await this.#close()
    await this.#lease
      .release()
      .catch((error: unknown) => logJobFailure(this.#parts.log, error, 'release of the broker'))
  }

  #next(): void {
    if (!this.#stopped) this.#cancel = this.#parts.platform.timers.after(BEAT_MS, () => this.wake())
  }

  async #check(): Promise<void> {
    const { log } = this.#parts
    try {
      const isHeld = await this.#lease.hold()
      if (isHeld && this.#broker === undefined) await this.#open()
      if (!isHeld) this.#warnOfOtherCloud()
      if (!isHeld && this.#broker !== undefined) {
        log.error({}, 'another process holds the broker, so this process closes its own')
        await this.#close()
      }
    } catch (error) {
      if (this.#broker !== undefined && this.#lease.isLost()) {
        log.error({ err: error }, 'this process closes its broker, because it cannot reach the database')
        await this.#close()
      }
      throw error
    }
  }

  /** Two clouds cannot exchange messages, so agents learn of changes in this cloud at their next poll. */
  #warnOfOtherCloud(): void {
    const { log, isSibling } = this.#parts
    const { livingHolder } = this.#lease
    if (this.#hasWarned || livingHolder === undefined || isSibling(livingHolder)) return
    this.#hasWarned = true
    log.warn(
      { holder: livingHolder },
      'another cloud on this database holds the embedded broker, so agents learn of changes up to 15 s late: use an outside broker with --mqtt-url',
    )
  }

  async #open(): Promise<void> {
    const { open, onChange, log } = this.#parts
    try {
      this.#broker = await open()
    } catch (error) {
      await this.#lease.release()
      throw error
    }
    log.info({ mqttPort: this.#broker.port }, 'this process holds the broker')
    onChange(this.#broker)
  }

  async #close(): Promise<void> {
    const broker = this.#broker
    this.#broker = undefined
    this.#parts.onChange(undefined)
    await broker?.close()
  }
}
