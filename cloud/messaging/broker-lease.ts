import type { Platform } from '../../policy/platform.ts'
import type { Database } from '../persistence/database.ts'
import type { ProcessLeaseRow } from '../persistence/tables/accounts.ts'

/** Time between two beats of the holder, ms. */
export const BEAT_MS = 2_000
/** A holder closes its broker if it cannot reach the database for this time, ms. */
export const GIVE_UP_MS = 15_000
/** Another process takes over if the holder has not raised its beat for this time, ms. Longer than `GIVE_UP_MS`. */
export const TAKE_OVER_MS = 20_000

const NAME = 'broker'

export interface LeaseParts {
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
  #seen: { row: ProcessLeaseRow; atMs: number; raisedBeat: boolean } | undefined
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

  #isFree(row: ProcessLeaseRow): boolean {
    if (this.#parts.hasEnded(row.holder)) return true
    const seen = this.#seen
    return seen?.row.holder === row.holder && seen.row.beat === row.beat && this.#since(seen.atMs) >= TAKE_OVER_MS
  }

  #since(ms: number): number {
    return this.#parts.platform.clock.elapsed() - ms
  }
}
