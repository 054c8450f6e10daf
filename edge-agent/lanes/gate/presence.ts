import type { Zone } from './deduplicate.ts'

/**
 *   inside ─▶ outside   leaves          outside ─▶ inside, and stays   has entered, may leave again
 *   inside ─▶ unseen for up to a minute ─▶ outside   leaves
 *   no antennas         every approach leaves
 *   outside alone       leaves when somebody goes through and it is not seen inside
 *
 * Where each tag in the field came from and goes, and which of them merely lie there. A tag that lies
 * between the antennas seems to wander: how long it is at most not seen inside is learnt. When that lasts
 * much longer while it is seen outside it has moved, so a tag that lay there and is carried out still leaves.
 */
export interface Presence {
  see(tag: string, zone: Zone, atMs: number): Movement
  /** Somebody went through: tags that may have gone along, to be asked about once more shortly after. */
  passed(atMs: number): string[]
  /** Whether a tag that `passed` named has shown itself outside only. */
  hasLeftUnseen(tag: string): boolean
  /** Whether the tag lies near the gate. */
  isStray(tag: string): boolean
  /** Tags that do not lie there and were seen within so long, ms. */
  near(withinMs: number, atMs: number): string[]
  /** Tags that lie near the gate, to be remembered over a restart. */
  strays(): Stray[]
  /** Forgets tags that have not been seen for long. */
  tidy(atMs: number): void
  readonly size: number
}

export type Movement = 'leaving' | 'entering' | 'present'

export interface Stray {
  readonly tag: string
  /** The longest time between two sightings inside while it lay there, ms; undefined: never seen inside. */
  readonly longestGapMs: number | undefined
  readonly wasOutside: boolean
}

interface Track {
  origin: Zone
  lastMs: number
  /** Seen without a longer gap since. */
  presentSinceMs: number
  /** Seen inside alone since. */
  insideSinceMs: number
  lastInsideMs: number
  /** Sightings outside since the last one inside. */
  outsideRun: number
  longestGapMs: number
  /** How often it was seen inside again after outside: nobody walks like that. */
  flickers: number
  /** How often it seemed to leave and had not, never unseen for a minute. */
  returns: number
  hasLeft: boolean
  hasEntered: boolean
  wasInside: boolean
  wasOutside: boolean
  isStray: boolean
}

/** A gap after which a tag approaches anew, ms. */
const APPROACH_MS = 5_000
/** From where a tag came is known for so long: in the Gen2 sessions 2 and 3 one that was read keeps silent for up to a minute, ms. */
const REMEMBERED_MS = 60_000
/** A tag that is there for so long lies there, ms. */
const STRAY_AFTER_MS = 20_000
/** A tag that lay there is a new one after so long, ms. */
const STRAY_QUIET_MS = 60_000
/** Inside alone for so long: whoever it is has come in, ms. */
const SETTLED_MS = 1_000
/** Seen outside so shortly before somebody went through, ms. */
const PASSAGE_MS = 1_000
/** While a new gate learns what lies around it a tag leaves when it was not seen inside for so long, ms. */
const CALIBRATION_GAP_MS = 300
/** After so many returns from outside a tag is taken for one that lies there already while the gate learns. */
const FLICKERS = 8
/** The same for a tag that lies there: a multiple of the longest such time so far, within bounds, ms. */
const GAP_FACTOR = 2.5
const [SHORTEST_GAP_MS, LONGEST_GAP_MS] = [400, 1_500]
/** Times that say nothing of how it lies: it was covered, or the reader was away. */
const GAP_LEARNT_MS = 10_000
const RETURNS_COUNTED = 2
/** So often in a row one that has returned so often is seen outside before it is believed to leave: what is seldom read, and lies there, is not. */
const RUN_AFTER_RETURNS = 3
const TRACK_LIMIT = 20_000
/** Tags remembered over a restart: written down in a few milliseconds, in which no tag is looked at. */
const STRAYS_KEPT = 1_000
const GAP_STEP_MS = 100

export interface PresenceOptions {
  /** What lay there before the restart. */
  strays: readonly Stray[]
  /** Until then the gate learns what lies around it, ms. */
  calibratingUntilMs: number
  nowMs: number
}

/** The tags around one gate. */
export function presence({ strays, calibratingUntilMs, nowMs }: PresenceOptions): Presence {
  const tracks = new Map<string, Track>()
  for (const { tag, longestGapMs, wasOutside } of strays.slice(0, TRACK_LIMIT)) {
    const wasInside = longestGapMs !== undefined
    // Where nobody can tell an approach from a way out, what was taken away meanwhile would come back unheard.
    if (!wasInside && !wasOutside) continue
    tracks.set(tag, {
      ...begin(wasInside ? 'inside' : 'none', nowMs),
      longestGapMs: longestGapMs ?? 0,
      wasInside,
      wasOutside,
      isStray: true,
    })
  }

  function trackOf(tag: string, zone: Zone, atMs: number): { track: Track; isNew: boolean } {
    const known = tracks.get(tag)
    const gap = known ? atMs - known.lastMs : Number.POSITIVE_INFINITY
    if (known && gap < approachMs(known, zone)) return { track: known, isNew: false }
    if (!known && tracks.size >= TRACK_LIMIT) dropOne()
    const track = known && gap < REMEMBERED_MS ? beginAnew(known, zone, atMs) : begin(zone, atMs)
    tracks.set(tag, track)
    return { track, isNew: true }
  }

  /** Without antennas a tag that lay there and comes near may be on its way out: only one that has returned again and again is left alone. */
  function approachMs({ isStray, returns }: Track, zone: Zone): number {
    const isLeftAlone = isStray && (zone !== 'none' || returns >= RETURNS_COUNTED)
    return isLeftAlone ? STRAY_QUIET_MS : APPROACH_MS
  }

  /** What was seen inside last and is outside now has left, wherever between it was not read. */
  function beginAnew(known: Track, zone: Zone, atMs: number): Track {
    const hadNotLeft = zone === 'none' ? known.isStray : known.hasLeft
    const track = { ...begin(zone, atMs), returns: Math.min(known.returns + (hadNotLeft ? 1 : 0), RETURNS_COUNTED) }
    const comesFromInside = zone === 'outside' && known.wasInside && known.outsideRun === 0
    return comesFromInside ? { ...track, origin: 'inside', wasInside: true, lastInsideMs: known.lastInsideMs } : track
  }

  /** The one that came first makes room. */
  function dropOne(): void {
    const [oldest] = tracks.keys()
    if (oldest !== undefined) tracks.delete(oldest)
  }

  function seeInside(track: Track, atMs: number): Movement {
    const gapMs = atMs - track.lastInsideMs
    if (track.wasInside && gapMs <= GAP_LEARNT_MS) track.longestGapMs = Math.max(track.longestGapMs, gapMs)
    if (track.isStray && track.hasLeft) {
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

  function seeOutside(track: Track, atMs: number): Movement {
    const isFirst = !track.wasOutside
    track.wasOutside = true
    track.outsideRun++
    if (track.hasLeft || !track.wasInside || (track.origin !== 'inside' && !track.isStray)) return 'present'
    if (!track.isStray && track.returns >= RETURNS_COUNTED && track.outsideRun < RUN_AFTER_RETURNS) return 'present'
    const needed = neededGapMs(track, isFirst, atMs)
    if (needed > 0 && (track.outsideRun < 2 || atMs - track.lastInsideMs < needed)) return 'present'
    track.hasLeft = true
    return 'leaving'
  }

  /** For how long a tag must not have been seen inside before it is believed to leave. */
  function neededGapMs(track: Track, isFirst: boolean, atMs: number): number {
    const learnt = Math.min(Math.max(track.longestGapMs * GAP_FACTOR, SHORTEST_GAP_MS), LONGEST_GAP_MS)
    if (track.isStray) return isFirst ? 0 : learnt * 2 ** track.returns
    if (atMs >= calibratingUntilMs) return 0
    return track.flickers >= FLICKERS ? Math.max(learnt, CALIBRATION_GAP_MS) : CALIBRATION_GAP_MS
  }

  return {
    see(tag, zone, atMs) {
      const { track, isNew } = trackOf(tag, zone, atMs)
      if (atMs - track.lastMs > APPROACH_MS) track.presentSinceMs = atMs
      track.lastMs = Math.max(track.lastMs, atMs)
      if (!track.isStray && atMs - track.presentSinceMs >= STRAY_AFTER_MS) track.isStray = true
      if (zone === 'none') return isNew ? 'leaving' : 'present'
      return zone === 'inside' ? seeInside(track, atMs) : seeOutside(track, atMs)
    },
    passed(atMs) {
      const near: string[] = []
      for (const [tag, track] of tracks) {
        if (
          track.origin === 'outside' &&
          !track.wasInside &&
          !track.isStray &&
          !track.hasLeft &&
          Math.abs(atMs - track.lastMs) <= PASSAGE_MS
        )
          near.push(tag)
      }
      return near
    },
    hasLeftUnseen(tag) {
      const track = tracks.get(tag)
      if (!track || track.wasInside || track.hasLeft) return false
      track.hasLeft = true
      return true
    },
    isStray: (tag) => tracks.get(tag)?.isStray === true,
    near: (withinMs, atMs) =>
      [...tracks].flatMap(([tag, { isStray, lastMs }]) => (!isStray && atMs - lastMs <= withinMs ? [tag] : [])),
    strays() {
      const lying = [...tracks]
        .filter(([, track]) => track.isStray && (track.wasInside || track.wasOutside))
        .slice(-STRAYS_KEPT)
      // In steps, so that what lies still is not written again and again.
      const gapOf = (track: Track) =>
        track.wasInside ? Math.ceil(track.longestGapMs / GAP_STEP_MS) * GAP_STEP_MS : undefined
      return lying.map(([tag, track]) => ({ tag, longestGapMs: gapOf(track), wasOutside: track.wasOutside }))
    },
    tidy(atMs) {
      for (const [tag, track] of tracks) if (atMs - track.lastMs >= STRAY_QUIET_MS) tracks.delete(tag)
    },
    get size() {
      return tracks.size
    },
  }
}

function begin(zone: Zone, atMs: number): Track {
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
    isStray: false,
  }
}
