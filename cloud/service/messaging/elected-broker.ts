import type { Cancel, Platform } from '../../../policy/platform.ts'
import { logJobFailure, type Log } from '../../platform/foundation/log.ts'
import type { Broker } from './embedded-broker.ts'
import type { Database } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'

/** Time between two beats of the holder, ms. */
const BEAT_MS = 2_000
/** A holder closes its broker if it cannot reach the database for this time, ms. */
export const GIVE_UP_MS = 15_000
/** Another process takes over if the holder has not raised its beat for this time, ms. Longer than `GIVE_UP_MS`. */
export const TAKE_OVER_MS = 20_000

const NAME = 'broker'

interface LeaseParts {
  database: Database
  platform: Pick<Platform, 'clock'>
  /** Id of this process. */
  holder: string
  /** True if the process `holder` has ended. The lease of an ended process is free at once. */
  hasEnded(holder: string): boolean
}

/**
 * Elects the one process that holds the embedded broker. The holder raises a beat in the database. Each other process
 * measures with its own clock how long the beat stays the same, so clocks of machines need not agree.
 */
export class BrokerLease {
  readonly #parts: LeaseParts
  /** The latest beat of another holder, and when this process first saw it. */
  #seen: { row: Row<'process_lease'>; atMs: number; raisedBeat: boolean } | undefined
  #confirmedMs: number | undefined

  constructor(parts: LeaseParts) {
    this.#parts = parts
  }

  /** Raises the beat, or takes the lease if it is free. Resolves to true if this process holds the lease. */
  async hold(): Promise<boolean> {
    const { database, holder, platform } = this.#parts
    const sentMs = platform.clock.elapsed()
    const row = await database.writeAlone('holdBroker', async (db) => {
      const found = await db.selectFrom('process_lease').selectAll().where('name', '=', NAME).executeTakeFirst()
      if (found && found.holder !== holder && !this.#isFree(found)) return found
      const mine = { name: NAME, holder, beat: (found?.beat ?? 0) + 1 }
      await db
        .insertInto('process_lease')
        .values(mine)
        .onConflict((c) => c.column('name').doUpdateSet({ holder, beat: mine.beat }))
        .execute()
      return mine
    })
    const isMine = row.holder === holder
    this.#confirmedMs = isMine ? sentMs : undefined
    if (isMine) this.#seen = undefined
    else if (this.#seen?.row.beat !== row.beat || this.#seen.row.holder !== row.holder)
      this.#seen = {
        row,
        atMs: platform.clock.elapsed(),
        raisedBeat: this.#seen?.row.holder === row.holder,
      }
    return isMine
  }

  /** True if this process could not confirm its lease for so long that it must close its broker. */
  isLost(): boolean {
    return this.#confirmedMs !== undefined && this.#since(this.#confirmedMs) >= GIVE_UP_MS
  }

  /** True if another process holds the lease and is alive. */
  isHeldElsewhere(): boolean {
    return this.#seen !== undefined && this.#since(this.#seen.atMs) < TAKE_OVER_MS
  }

  /** Another process that this process has seen raise the beat; undefined if there is none. */
  get livingHolder(): string | undefined {
    return this.#seen?.raisedBeat ? this.#seen.row.holder : undefined
  }

  /** Frees the lease if this process holds it, so that another process takes over at once. */
  async release(): Promise<void> {
    const { database, holder } = this.#parts
    this.#confirmedMs = undefined
    await database.writeAlone('holdBroker', async (db) => {
      await db.deleteFrom('process_lease').where('name', '=', NAME).where('holder', '=', holder).execute()
    })
  }

  #isFree(row: Row<'process_lease'>): boolean {
    if (this.#parts.hasEnded(row.holder)) return true
    const seen = this.#seen
    return seen?.row.holder === row.holder && seen.row.beat === row.beat && this.#since(seen.atMs) >= TAKE_OVER_MS
  }

  #since(ms: number): number {
    return this.#parts.platform.clock.elapsed() - ms
  }
}

interface ElectionParts extends LeaseParts {
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
