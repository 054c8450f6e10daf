import type { Zone } from './deduplicate.ts'

type Movement = 'leaving' | 'entering' | 'present'

/** Reads of one tag since it approached the gate. */
interface Track {
  origin: Zone
  lastMs: number
  /** Time since which no gap between reads was longer than `APPROACH_MS`. */
  presentSinceMs: number
  /** Time since which all reads were inside. */
  insideSinceMs: number
  lastInsideMs: number
  /** Number of reads outside since the last read inside, without those that the filter drops. */
  outsideRun: number
  longestGapMs: number
  /** How often a read inside followed reads outside. Walking shoppers cause few flickers. */
  flickers: number
  /** How often the tag counted as left and was read again within a minute. */
  returns: number
  hasLeft: boolean
  hasEntered: boolean
  wasInside: boolean
  wasOutside: boolean
  isStationary: boolean
}

/** Gap between reads after which the next read counts as a new approach of the tag, ms. */
const APPROACH_MS = 5_000
/**
 * Time for which the origin of a tag is remembered, ms. In Gen2 sessions 2 and 3 a tag stays silent for up to a
 * minute after a read.
 */
const REMEMBERED_MS = 60_000
/** Gap after which the next read of a stationary tag counts as a new approach, ms. */
const STATIONARY_GONE_MS = 60_000
/** Period after which a tag counts as inside again if all its reads were inside, ms. */
const SETTLED_MS = 1_000
/** While a gate learns: minimum time without a read inside before a tag counts as left, ms. */
const CALIBRATION_GAP_MS = 300
/** While a gate learns: time without any read after which a tag that was last read outside counts as left, ms. */
const UNREAD_MS = 500
/** While a gate learns: number of flickers from which a tag is treated as stationary. */
const FLICKERS = 8
/**
 * A stationary tag counts as left after this many times its longest gap without reads inside, within the bounds below
 * (ms).
 */
const GAP_FACTOR = 2.5
const [SHORTEST_GAP_MS, LONGEST_GAP_MS] = [400, 1_500]
/** Maximum gap that the gate learns from, ms. In a longer gap the tag was covered or the reader was offline. */
const GAP_LEARNT_MS = 10_000
const RETURNS_COUNTED = 2
/**
 * A tag that returned twice counts as left only after this many consecutive reads outside. Stationary tags that are
 * rarely read do not reach this number.
 */
const RUN_AFTER_RETURNS = 3

/** Track of a tag that approaches for the first time. */
function newTrack(zone: Zone, atMs: number): Track {
  return {
    origin: zone,
    lastMs: atMs,
    presentSinceMs: atMs,
    insideSinceMs: atMs,
    lastInsideMs: atMs,
    outsideRun: 0,
    longestGapMs: 0,
    flickers: 0,
    returns: 0,
    hasLeft: false,
    hasEntered: false,
    wasInside: false,
    wasOutside: false,
    isStationary: false,
  }
}

/** Track of a stationary tag that did not move yet. */
function stationaryTrack(
  { longestGapMs, wasInside, wasOutside }: Pick<Track, 'longestGapMs' | 'wasInside' | 'wasOutside'>,
  atMs: number,
): Track {
  const track = newTrack(wasInside ? 'inside' : 'none', atMs)
  return { ...track, longestGapMs, wasInside, wasOutside, isStationary: true }
}

/**
 * Track of a known tag that approaches again. If the last read was inside and the new read is outside, the tag is
 * leaving.
 */
function newApproach(known: Track, zone: Zone, atMs: number): Track {
  const hadNotLeft = zone === 'none' ? known.isStationary : known.hasLeft
  const track = { ...newTrack(zone, atMs), returns: Math.min(known.returns + (hadNotLeft ? 1 : 0), RETURNS_COUNTED) }
  const comesFromInside = zone === 'outside' && known.wasInside && known.outsideRun === 0
  return comesFromInside ? { ...track, origin: 'inside', wasInside: true, lastInsideMs: known.lastInsideMs } : track
}

/**
 * Gap after which the next read counts as a new approach of the tag, ms. If the reader cannot locate tags, a stationary
 * tag that is read again may be leaving. After two returns the gate ignores such a tag.
 */
function approachMs({ isStationary, returns }: Track, zone: Zone): number {
  const isUsual = isStationary && (zone !== 'none' || returns >= RETURNS_COUNTED)
  return isUsual ? STATIONARY_GONE_MS : APPROACH_MS
}

/** Handles a read inside. */
function seeInside(track: Track, atMs: number): Movement {
  const gapMs = atMs - track.lastInsideMs
  if (track.wasInside && gapMs <= GAP_LEARNT_MS) track.longestGapMs = Math.max(track.longestGapMs, gapMs)
  if (track.isStationary && track.hasLeft) {
    track.returns = Math.min(track.returns + 1, RETURNS_COUNTED)
    track.hasLeft = false
  }
  if (track.outsideRun > 0) track.flickers++
  if (track.outsideRun > 0 || !track.wasInside) track.insideSinceMs = atMs
  track.lastInsideMs = atMs
  track.outsideRun = 0
  track.wasInside = true
  if (atMs - track.insideSinceMs >= SETTLED_MS) {
    track.origin = 'inside'
    track.hasLeft = false
  }
  if (track.origin !== 'outside' || track.hasEntered) return 'present'
  track.hasEntered = true
  return 'entering'
}

/** Handles a read outside. */
function seeOutside(track: Track, atMs: number, calibratingUntilMs: number): Movement {
  const isFirst = !track.wasOutside
  track.wasOutside = true
  track.outsideRun++
  if (track.hasLeft || !track.wasInside || (track.origin !== 'inside' && !track.isStationary)) return 'present'
  if (!track.isStationary && isIgnored(track)) return 'present'
  const needed = neededGapMs(track, isFirst, atMs < calibratingUntilMs)
  if (needed > 0 && (track.outsideRun < 2 || atMs - track.lastInsideMs < needed)) return 'present'
  track.hasLeft = true
  return 'leaving'
}

/**
 * Time until a tag counts as left if it is not read again, ms. Undefined if it cannot leave like this: such as a tag
 * whose last read was inside. For a gate that still learns: a fast walker is soon read no more, and a reader
 * may report a tag outside only once.
 */
function leavesInMs(track: Track, atMs: number): number | undefined {
  const { hasLeft, wasInside, origin, isStationary, outsideRun, lastMs } = track
  if (hasLeft || !wasInside || origin !== 'inside' || isStationary || outsideRun === 0) return undefined
  if (isIgnored(track)) return undefined
  return Math.max(0, lastMs + UNREAD_MS - atMs)
}

/** True if the tag returned so often that the gate waits for more reads outside in a row. */
function isIgnored({ returns, outsideRun }: Track): boolean {
  return returns >= RETURNS_COUNTED && outsideRun < RUN_AFTER_RETURNS
}

/** Returns the time without a read inside after which the gate treats the tag as gone, ms. */
function neededGapMs(track: Track, isFirst: boolean, isCalibrating: boolean): number {
  const learnt = Math.min(Math.max(track.longestGapMs * GAP_FACTOR, SHORTEST_GAP_MS), LONGEST_GAP_MS)
  if (track.isStationary) return isFirst ? 0 : learnt * 2 ** track.returns
  if (!isCalibrating) return 0
  return track.flickers >= FLICKERS ? Math.max(learnt, CALIBRATION_GAP_MS) : CALIBRATION_GAP_MS
}

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

interface PresenceOptions {
  /** Stationary tags that were stored before the restart. */
  stationaryTags: readonly StationaryTag[]
  /** End of the time in which the gate learns the stationary tags around it, ms. */
  calibratingUntilMs: number
  nowMs: number
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
      this.#tracks.set(tag, stationaryTrack({ longestGapMs: longestGapMs ?? 0, wasInside, wasOutside }, nowMs))
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

  /**
   * Forgets the tags that have left, so that each can leave again at once. Keeps the others: a person may be carrying
   * one out now.
   */
  forgetDepartures(atMs: number): void {
    for (const [tag, track] of this.#tracks) {
      if (!track.hasLeft) continue
      if (track.isStationary) this.#tracks.set(tag, stationaryTrack(track, atMs))
      else this.#tracks.delete(tag)
    }
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
