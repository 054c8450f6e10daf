import type { Zone } from './deduplicate.ts'
import {
  APPROACH_MS,
  approachMs,
  newTrack,
  leavesInMs,
  newApproach,
  REMEMBERED_MS,
  seeInside,
  seeOutside,
  STATIONARY_GONE_MS,
  type Movement,
  type Track,
} from './track.ts'

export interface StationaryTag {
  readonly tag: string
  /** Longest gap between two reads inside while the tag was stationary, ms; undefined: never read inside. */
  readonly longestGapMs: number | undefined
  readonly wasOutside: boolean
}

/** Time in the field after which a tag counts as stationary, ms. */
const STATIONARY_AFTER_MS = 20_000
/** Maximum time between a passage and a read of a tag that may have left with the person, ms. */
const PASSAGE_MS = 1_000
const TRACK_LIMIT = 20_000
/** Maximum stationary tags that are stored for a restart. Storing them blocks the gate for a few ms. */
const STATIONARY_LIMIT = 1_000
const GAP_STEP_MS = 100

export interface PresenceOptions {
  /** Stationary tags that were stored before the restart. */
  stationaryTags: readonly StationaryTag[]
  /** End of the time in which the gate learns the stationary tags around it, ms. */
  calibratingUntilMs: number
  nowMs: number
}

/** The tags around one gate. */
export function openPresence(options: PresenceOptions): Presence {
  return new Presence(options)
}

/**
 * Tracks each tag in the field: its origin, its direction, and whether it is stationary.
 *
 * - A tag leaves if it is read inside and then outside, even after up to a minute without a read.
 * - A tag enters if it is read outside and then inside.
 * - A tag that is read only outside leaves if a person passes the gate at the same time.
 * - If the reader cannot locate tags, each new approach of a tag counts as leaving.
 *
 * A stationary tag between the antennas seems to move. So the gate learns the tag's longest gap without a read inside.
 * A much longer gap with reads outside means that a person carries the tag out.
 */
export class Presence {
  readonly #tracks = new Map<string, Track>()
  readonly #calibratingUntilMs: number

  constructor({ stationaryTags, calibratingUntilMs, nowMs }: PresenceOptions) {
    this.#calibratingUntilMs = calibratingUntilMs
    for (const { tag, longestGapMs, wasOutside } of stationaryTags.slice(0, TRACK_LIMIT)) {
      const wasInside = longestGapMs !== undefined
      // Skips tags from readers that cannot locate tags: such a tag may have left during the restart. If the tag
      // counted as stationary, its return would cause no alarm.
      if (!wasInside && !wasOutside) continue
      const track = newTrack(wasInside ? 'inside' : 'none', nowMs)
      this.#tracks.set(tag, { ...track, longestGapMs: longestGapMs ?? 0, wasInside, wasOutside, isStationary: true })
    }
  }

  /** Handles a read, and returns the movement of the tag. */
  see(tag: string, zone: Zone, atMs: number): Movement {
    const { track, isNew } = this.#trackOf(tag, zone, atMs)
    if (atMs - track.lastMs > APPROACH_MS) track.presentSinceMs = atMs
    track.lastMs = Math.max(track.lastMs, atMs)
    if (!track.isStationary && atMs - track.presentSinceMs >= STATIONARY_AFTER_MS) track.isStationary = true
    if (zone === 'none') return isNew ? 'leaving' : 'present'
    return zone === 'inside' ? seeInside(track, atMs) : seeOutside(track, atMs, this.#calibratingUntilMs)
  }

  /**
   * Returns the tags that may have left with a person who passes at `atMs`. Check each of these tags later with
   * `hasLeftUnseen`.
   */
  passed(atMs: number): string[] {
    const mayHaveGone = ({ origin, wasInside, isStationary, hasLeft, lastMs }: Track) =>
      origin === 'outside' && !wasInside && !isStationary && !hasLeft && Math.abs(atMs - lastMs) <= PASSAGE_MS
    return [...this.#tracks].flatMap(([tag, track]) => (mayHaveGone(track) ? [tag] : []))
  }

  /** True if a tag that `passed` returned was not read inside since. Marks the tag as left. */
  hasLeftUnseen(tag: string): boolean {
    const track = this.#tracks.get(tag)
    if (!track || track.wasInside || track.hasLeft) return false
    track.hasLeft = true
    return true
  }

  /** Handles a read outside that the filter drops as repeated. */
  seeAgainOutside(tag: string, atMs: number): void {
    const track = this.#tracks.get(tag)
    if (track) track.lastMs = Math.max(track.lastMs, atMs)
  }

  /** True while a new gate learns the stationary tags around it. */
  isLearning(atMs: number): boolean {
    return atMs < this.#calibratingUntilMs
  }

  /** Time until a tag that is not read again counts as left, ms; undefined: never. Marks the tag as left at 0. */
  leavesInMs(tag: string, atMs: number): number | undefined {
    const track = this.#tracks.get(tag)
    const waitMs = track && leavesInMs(track, atMs)
    if (track && waitMs === 0) track.hasLeft = true
    return waitMs
  }

  /** True if the tag is stationary near the gate. */
  isStray(tag: string): boolean {
    return this.#tracks.get(tag)?.isStationary === true
  }

  /** Tags that are not stationary and were last read at most `withinMs` ago. */
  near(withinMs: number, atMs: number): string[] {
    return [...this.#tracks].flatMap(([tag, { isStationary, lastMs }]) =>
      !isStationary && atMs - lastMs <= withinMs ? [tag] : [],
    )
  }

  /** Stationary tags, for storage over a restart. */
  stationaryTags(): StationaryTag[] {
    const stationary = [...this.#tracks]
      .filter(([, track]) => track.isStationary && (track.wasInside || track.wasOutside))
      .slice(-STATIONARY_LIMIT)
    // Rounds gaps, so that small changes cause no write.
    const gapOf = (track: Track) =>
      track.wasInside ? Math.ceil(track.longestGapMs / GAP_STEP_MS) * GAP_STEP_MS : undefined
    return stationary.map(([tag, track]) => ({ tag, longestGapMs: gapOf(track), wasOutside: track.wasOutside }))
  }

  /** Drops tags that were not read for a minute. */
  tidy(atMs: number): void {
    for (const [tag, track] of this.#tracks) if (atMs - track.lastMs >= STATIONARY_GONE_MS) this.#tracks.delete(tag)
  }

  get size(): number {
    return this.#tracks.size
  }

  #trackOf(tag: string, zone: Zone, atMs: number): { track: Track; isNew: boolean } {
    const known = this.#tracks.get(tag)
    const gap = known ? atMs - known.lastMs : Number.POSITIVE_INFINITY
    if (known && gap < approachMs(known, zone)) return { track: known, isNew: false }
    if (!known && this.#tracks.size >= TRACK_LIMIT) this.#dropOldest()
    const track = known && gap < REMEMBERED_MS ? newApproach(known, zone, atMs) : newTrack(zone, atMs)
    this.#tracks.set(tag, track)
    return { track, isNew: true }
  }

  #dropOldest(): void {
    const [oldest] = this.#tracks.keys()
    if (oldest !== undefined) this.#tracks.delete(oldest)
  }
}
