import type { Journal } from './journal.ts'
import type { Metadata } from '../file/metadata.ts'

/**
 *   freshness of a higher generation ─▶ tokens of before are dropped, everything still here is told again ─▶ all acknowledged ─▶ resynced
 *   freshness key revoked ──────────────────────────────────────────────────▲
 *
 * A cloud that was restored from a backup has forgotten what this agent remembers (ADR 0019).
 */
export interface CloudGeneration {
  /** The highest that was heard, by signature; undefined before the first. */
  readonly current: number | undefined
  /** Hears one that is signed, at this signed time (ms). Call it inside a transaction. */
  note(generation: number, timeMs: number): void
  /**
   * Whoever has signed the highest is not believed any more: the next that is heard counts, a lower one too, and what was acknowledged is
   * told again. Call it inside a transaction.
   */
  distrust(): void
  /** Sends all stored rows again. Call it inside a transaction. */
  resendAll(): void
  /** The journal's rows were numbered anew. Call it inside that transaction. */
  onRenumbered(): void
  /** A lower one is of a cloud as it was before it was restored. */
  readonly lowest: number
  /** Rejects tokens that were issued before this time, s. Call it inside a transaction. */
  dropTokensBefore(timeS: number): void
  /** Tokens that were issued before are not honoured, seconds since 1970. */
  readonly tokensSince: number
  /** What is told again, while it is not all acknowledged. */
  readonly resync: { cloudGeneration: number; oldest: number } | undefined
  /** The restored cloud that has everything again; undefined while it has not, and for one that was never restored. */
  readonly resynced: number | undefined
}

const CURRENT = 'cloud_generation'
const DISTRUSTED = 'cloud_generation_doubted'
const TOKENS_SINCE = 'tokens_since_s'
/** The first row that is told again. */
const RESYNC_FROM = 'resync_from'
/** The last row that the lost cloud may have acknowledged. */
const RESYNC_UNTIL = 'resync_until'
/** Of a cloud that was never restored. */
const FIRST = 1

/** The cloud's generation as this ledger knows it. */
export function openCloudGeneration(metadata: Metadata, journal: Journal): CloudGeneration {
  const read = (name: string) => {
    const value = metadata.getCached(name)
    return value === undefined ? undefined : Number(value)
  }
  const isResent = () => journal.acked >= (read(RESYNC_UNTIL) ?? 0)

  function resendAll(): void {
    metadata.set(RESYNC_FROM, String(journal.resendAll()))
    metadata.set(RESYNC_UNTIL, String(journal.head.seq))
  }

  return {
    get current() {
      return read(CURRENT)
    },
    note(generation, timeMs) {
      const known = read(CURRENT)
      if (read(DISTRUSTED) === 1) metadata.set(DISTRUSTED, '0')
      if (generation === known) return
      metadata.set(CURRENT, String(generation))
      // The first cloud that is ever heard has given nothing and lost nothing.
      if (known === undefined) return
      metadata.set(TOKENS_SINCE, String(Math.floor(timeMs / 1_000)))
      resendAll()
    },
    distrust() {
      if (read(CURRENT) !== undefined) metadata.set(DISTRUSTED, '1')
      if (journal.acked > 0) resendAll()
    },
    resendAll,
    onRenumbered() {
      // Rows that were acknowledged are no longer here: what is told again to a restored cloud is what waits anyway.
      if (metadata.get(RESYNC_UNTIL) !== undefined) metadata.set(RESYNC_UNTIL, String(journal.head.seq))
      // Their numbers begin anew: the former first may be one in the middle now.
      if (metadata.get(RESYNC_FROM) !== undefined) metadata.set(RESYNC_FROM, '1')
    },
    dropTokensBefore: (timeS) => metadata.set(TOKENS_SINCE, String(timeS)),
    get lowest() {
      return read(DISTRUSTED) === 1 ? FIRST : (read(CURRENT) ?? FIRST)
    },
    get tokensSince() {
      return read(TOKENS_SINCE) ?? 0
    },
    get resync() {
      const [cloudGeneration, oldest] = [read(CURRENT), read(RESYNC_FROM)]
      return cloudGeneration === undefined || oldest === undefined || isResent()
        ? undefined
        : { cloudGeneration, oldest }
    },
    get resynced() {
      const known = read(CURRENT) ?? FIRST
      return known > FIRST && isResent() ? known : undefined
    },
  }
}
