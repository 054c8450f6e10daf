import type { Db } from '../persistence/database.ts'
import { readValue, writeValue } from '../persistence/installation.ts'
import { prepared } from '../persistence/prepared.ts'
import type { Clock } from '../../../policy/platform.ts'
import { Failure } from '../foundation/failure.ts'

/**
 * Time for signatures. A wrong signed time would harm every agent, so the cloud signs nothing while wall clock and
 * elapsed time disagree (ADR trusted-time).
 */
export interface SigningClock {
  /** Now, ms since 1970. Throws `unavailable` while the clock is not trusted. */
  nowMs(): number
  /** Reason why the cloud signs nothing now; null while the clock is trusted. */
  untrustedReason(): string | null
  /**
   * Wall clock time, ms. While the clock is not trusted, the result is at most the last trusted time plus the elapsed
   * time. Use this time for documents that the cloud must always sign, but must not date in the future.
   */
  noLaterMs(): number
  /** Replaces the latest signed time (ms), when a new time epoch begins. */
  reset(lastSignedMs: number): void
}

const TOLERANCE_MS = 60_000
/** Time for which wall clock and elapsed time must agree after a jump, ms. */
const SETTLE_MS = 60_000

/** Creates the clock. `lastSignedMs`: latest signed time, from the database. */
export function signingClock(clock: Clock, lastSignedMs: number): SigningClock {
  let offset = clock.wall() - clock.elapsed()
  let jumpedAt: number | null = null
  let behindUntil = lastSignedMs
  /** Wall clock and elapsed time when they last agreed. */
  let agreed: { wall: number; elapsed: number } | undefined

  function untrustedReason(): string | null {
    const wall = clock.wall()
    if (wall < behindUntil)
      return `the clock shows ${new Date(wall).toISOString()}, before the last time that was signed`
    behindUntil = 0
    const drift = Math.abs(wall - clock.elapsed() - offset)
    if (drift > TOLERANCE_MS) {
      offset = wall - clock.elapsed()
      jumpedAt = clock.elapsed()
    }
    if (jumpedAt !== null && clock.elapsed() - jumpedAt < SETTLE_MS) return 'the clock has just jumped'
    jumpedAt = null
    agreed = { wall, elapsed: clock.elapsed() }
    return null
  }

  return {
    untrustedReason,
    noLaterMs() {
      const isSure = untrustedReason() === null
      const wall = clock.wall()
      return isSure || !agreed ? wall : Math.min(wall, agreed.wall + clock.elapsed() - agreed.elapsed)
    },
    reset: (ms) => void (behindUntil = ms),
    nowMs() {
      const why = untrustedReason()
      if (why)
        throw new Failure('unavailable', `nothing is signed now: ${why}`, { reason: 'clock_untrusted', retryAfter: 60 })
      return clock.wall()
    },
  }
}

/**
 * The latest signed time. At its start, the cloud compares this time with the clock, to detect a clock that is behind.
 */

const NAME = 'last_signed_ms'

/** Stores a signed time, ms. */
export async function storeLastSigned(db: Db, ms: number): Promise<void> {
  await writeValue(db, NAME, String(ms))
}

/** Latest signed time, ms. */
export async function readLastSigned(db: Db): Promise<number | undefined> {
  const value = await readValue(db, NAME)
  return value === undefined ? undefined : Number(value)
}

/**
 * Counters of the installation that never decrease. Every process reads them before each request, so that it uses no
 * key that another process has revoked.
 */
export interface KeyCounters {
  /** Number of the last key change. */
  generation: number
  /**
   * Epoch of policies. The revocation of a stolen key and a restore raise this epoch, so that new policies outrank
   * old ones.
   */
  documentEpoch: number
  /** Epoch of key sets. A new root key and a restore raise this epoch. */
  keySetEpoch: number
  /** Epoch of signed times, raised when a key that signs them is revoked; 0 initially. */
  timeEpoch: number
  /** 1 at first; after a restore, the time of the restore, ms since 1970. */
  cloudGeneration: number
  /** Time of the last restore, ms since 1970; 0 without one. */
  restoredMs: number
}

const NAMES = {
  generation: 'key_generation',
  documentEpoch: 'document_epoch',
  keySetEpoch: 'key_set_epoch',
  timeEpoch: 'time_epoch',
  cloudGeneration: 'cloud_generation',
  restoredMs: 'restored_ms',
} as const satisfies Record<keyof KeyCounters, string>

const countersQuery = prepared((db) =>
  db.selectFrom('installation').select(['name', 'value']).where('name', 'in', Object.values(NAMES)),
)

/** Reads all counters. */
export async function readKeyCounters(db: Db): Promise<KeyCounters> {
  const rows = await countersQuery(db, {})
  const value = (name: keyof KeyCounters, first: number) =>
    Number(rows.find((row) => row.name === NAMES[name])?.value ?? first)
  return {
    generation: value('generation', 0),
    documentEpoch: value('documentEpoch', 0),
    keySetEpoch: value('keySetEpoch', 0),
    timeEpoch: value('timeEpoch', 0),
    cloudGeneration: value('cloudGeneration', 1),
    restoredMs: value('restoredMs', 0),
  }
}

/**
 * Query that returns the number of the last key change, stored as text. Other queries contain this query as a subquery,
 * so that no separate round trip is needed.
 */
export function keyGenerationQuery(db: Db) {
  return db.selectFrom('installation').select('value').where('name', '=', NAMES.generation)
}

const generationQuery = prepared(keyGenerationQuery)

/** Reads the number of the last key change. */
export async function readKeyGeneration(db: Db): Promise<KeyCounters['generation']> {
  const [row] = await generationQuery(db, {})
  return Number(row?.value ?? 0)
}

/** Raises the number of the last key change, so that every process reloads its keys. */
export function raiseKeyGeneration(db: Db): Promise<void> {
  return raise(db, 'generation')
}

/** Raises the document epoch. */
export function raiseDocumentEpoch(db: Db): Promise<void> {
  return raise(db, 'documentEpoch')
}

/**
 * Begins a time epoch, which makes earlier signed times invalid. The number of the epoch is the current time, s. So a
 * restored cloud that revokes the key again gets a higher number than the epoch that it lost.
 */
export async function beginTimeEpoch(db: Db, nowMs: number): Promise<void> {
  const { timeEpoch } = await readKeyCounters(db)
  await writeKeyCounter(db, 'timeEpoch', Math.max(timeEpoch + 1, Math.floor(nowMs / 1_000)))
  await storeLastSigned(db, nowMs)
}

/** Raises the time epoch to `epoch` if the restored cloud has a lower one. Returns true if it raised the epoch. */
export async function resumeTimeEpoch(db: Db, epoch: number): Promise<boolean> {
  const { timeEpoch } = await readKeyCounters(db)
  if (epoch <= timeEpoch) return false
  await writeKeyCounter(db, 'timeEpoch', epoch)
  await raiseKeyGeneration(db)
  return true
}

/** Raises the epoch of key sets, so that the cloud signs all of them again. */
export async function raiseKeySetEpoch(db: Db): Promise<void> {
  await raise(db, 'keySetEpoch')
  await raiseKeyGeneration(db)
}

async function raise(db: Db, name: keyof KeyCounters): Promise<void> {
  await writeKeyCounter(db, name, (await readKeyCounters(db))[name] + 1)
}

/** Sets a counter. The number must not be lower than the stored one. */
export async function writeKeyCounter(db: Db, name: keyof KeyCounters, number: number): Promise<void> {
  await writeValue(db, NAMES[name], String(number))
}
