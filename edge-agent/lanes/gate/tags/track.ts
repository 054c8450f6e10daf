import type { Zone } from './deduplicate.ts'

export type Movement = 'leaving' | 'entering' | 'present'

/** Reads of one tag since it approached the gate. */
export interface Track {
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
export const APPROACH_MS = 5_000
/**
 * Time for which the origin of a tag is remembered, ms. In Gen2 sessions 2 and 3 a tag stays silent for up to a
 * minute after a read.
 */
export const REMEMBERED_MS = 60_000
/** Gap after which the next read of a stationary tag counts as a new approach, ms. */
export const STATIONARY_GONE_MS = 60_000
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
export function newTrack(zone: Zone, atMs: number): Track {
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

/**
 * Track of a known tag that approaches again. If the last read was inside and the new read is outside, the tag is
 * leaving.
 */
export function newApproach(known: Track, zone: Zone, atMs: number): Track {
  const hadNotLeft = zone === 'none' ? known.isStationary : known.hasLeft
  const track = { ...newTrack(zone, atMs), returns: Math.min(known.returns + (hadNotLeft ? 1 : 0), RETURNS_COUNTED) }
  const comesFromInside = zone === 'outside' && known.wasInside && known.outsideRun === 0
  return comesFromInside ? { ...track, origin: 'inside', wasInside: true, lastInsideMs: known.lastInsideMs } : track
}

/**
 * Gap after which the next read counts as a new approach of the tag, ms. If the reader cannot locate tags, a stationary
 * tag that is read again may be leaving. After two returns the gate ignores such a tag.
 */
export function approachMs({ isStationary, returns }: Track, zone: Zone): number {
  const isUsual = isStationary && (zone !== 'none' || returns >= RETURNS_COUNTED)
  return isUsual ? STATIONARY_GONE_MS : APPROACH_MS
}

/** Handles a read inside. */
export function seeInside(track: Track, atMs: number): Movement {
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
export function seeOutside(track: Track, atMs: number, calibratingUntilMs: number): Movement {
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
export function leavesInMs(track: Track, atMs: number): number | undefined {
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
