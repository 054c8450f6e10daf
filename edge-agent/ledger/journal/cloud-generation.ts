import type { Journal } from './journal.ts'
import type { Metadata } from '../file/metadata.ts'

/**
 * Generation of the cloud. A restored cloud has a new generation and lacks rows and tokens that this agent has (ADR
 * 0019). So the agent rejects older tokens and sends all stored rows again. This resync ends when the cloud has
 * acknowledged all of these rows.
 */
export interface CloudGeneration {
  /** The last accepted signed generation; undefined before the first. */
  readonly current: number | undefined
  /** Applies a signed generation with its signed time, ms. Call it inside a transaction. */
  note(generation: number, timeMs: number): void
  /**
   * Call this inside a transaction, after the key that signed the generation was revoked. The agent then accepts the
   * next signed generation, even a lower one, and sends acknowledged rows again.
   */
  distrust(): void
  /** Sends all stored rows again. Call it inside a transaction. */
  resendAll(): void
  /** Adapts the row numbers of the resync. Call it inside the transaction that renumbers the journal. */
  onRenumbered(): void
  /** The agent rejects documents with a lower generation, because they are from before a restore. */
  readonly lowest: number
  /** Makes the agent reject tokens that were issued before this time, s. Call it inside a transaction. */
  dropTokensBefore(timeS: number): void
  /** The agent rejects tokens that were issued before this time, s since 1970. */
  readonly tokensSince: number
  /**
   * The current resync: generation of the cloud, and first row to send again. Undefined if all rows are acknowledged.
   */
  readonly resync: { cloudGeneration: number; oldest: number } | undefined
  /**
   * Generation of the restored cloud. Undefined if the cloud was never restored, or until it has acknowledged all rows
   * again.
   */
  readonly resynced: number | undefined
}

const CURRENT = 'cloud_generation'
const DISTRUSTED = 'cloud_generation_doubted'
const TOKENS_SINCE = 'tokens_since_s'
/** Metadata key: first row to send again. */
const RESYNC_FROM = 'resync_from'
/** Metadata key: last row that the cloud may have lost. */
const RESYNC_UNTIL = 'resync_until'
/** Generation of a cloud that was never restored. */
const FIRST = 1

/** Opens the generation that this ledger stores. */
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
      // The first generation that the agent receives does not mean that the cloud was restored.
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
      // The journal deleted the acknowledged rows, so a resync covers only the unacknowledged rows.
      if (metadata.get(RESYNC_UNTIL) !== undefined) metadata.set(RESYNC_UNTIL, String(journal.head.seq))
      // Renumbered rows start at 1.
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
