import type { Finding, TagName, TagRead } from '../../device-drivers/kit/device.ts'
import { budget, type Budget } from '../../policy/budget.ts'
import type { Platform } from '../../policy/platform.ts'
import type { TagTechnology } from '../../policy/vocabulary.ts'
import type { KnownItem } from '../items/item-table.ts'

interface PresentingReader {
  /** Time without a read after which a tag counts as removed, ms. Null if the reader reports removals. */
  readonly absentMs: number | null
  /** Weakest signal of a presented tag, dBm. Undefined: no minimum. */
  readonly minimumRssi: number | undefined
}

interface PresentationsParts {
  platform: Platform
  find(tag: TagName): KnownItem | undefined
  /**
   * Requests a decision about the tag; resolves with true if it was authorized. Must not throw. `technology` is
   * undefined if the reader does not report it.
   */
  request(deviceId: string, tag: TagName, technology: TagTechnology | undefined): Promise<boolean>
  /** Called when a lane begins to have too many tags. */
  onCrowded(deviceId: string, detail: string): void
}

interface Presented {
  readonly tag: TagName
  readonly technology: TagTechnology | undefined
  seenMs: number
  absentMs: number | null
  state: 'waiting' | 'deciding' | 'granted' | 'refused'
  rank: Rank
  /** Item status at the time of the request. */
  itemAtRequest: string
  /** True if a receipt, operator or item changed during the request. */
  isChanged: boolean
}

interface Lane {
  /** In the order of presentation, oldest first. */
  readonly tags: Map<string, Presented>
  isBusy: boolean
  /** Requests that `UNREGISTERED` limits. */
  readonly budget: Budget
  /** Time until which the lane counts as crowded, ms. */
  crowdedUntilMs: number
  /** How often a tag got no request since the start, because the lane was full or the limit was reached. */
  dropped: number
}

/** A tag with a higher rank is decided first, and takes the place of one with a lower rank. */
type Rank = (typeof RANKS)[keyof typeof RANKS]
const RANKS = { unregistered: 0, registered: 1, paid: 2 } as const

/** Maximum age of a read that counts as a presentation, ms. A reader buffers reads while its network is down. */
const LATE_MS = 2_000
/** Maximum tags at a lane. A further tag replaces the oldest refused one of at most its rank. */
const TAGS_LIMIT = 100
/**
 * Requests of a lane for tags without an item, and for tags that replace others of their rank: at once, and per second
 * after that. Anyone may hold blank labels to a reader, and each request is an event of the cloud.
 */
const UNREGISTERED = { most: 100, perSecond: 1 }
/** How long a lane counts as crowded after a tag had no place or no request, ms. */
const CROWDED_MS = 60_000

const keyOf = (tag: TagName) => ('epc' in tag ? `E${tag.epc}` : `U${tag.tagUid}`)

/**
 * Tags that are presented at lanes other than gates. Each presentation makes one request. If the request is denied and
 * the tag stays, a new item status, receipt or operator causes another request. A lane handles one tag at a time,
 * those of paid items first. Before each request, the lane drops tags that were removed.
 */
export class Presentations {
  readonly #parts: PresentationsParts
  readonly #lanes = new Map<string, Lane>()
  #isStopped = false

  constructor(parts: PresentationsParts) {
    this.#parts = parts
  }

  /** Handles reads of a lane. */
  onReads(deviceId: string, reads: readonly TagRead[], { absentMs, minimumRssi }: PresentingReader): void {
    const lane = this.#laneOf(deviceId)
    this.#dropAbsent(lane)
    const nowMs = this.#parts.platform.clock.elapsed()
    for (const { tag, technology, rssiDbm, seenAtMs } of reads) {
      const isNear = minimumRssi === undefined || rssiDbm === undefined || rssiDbm >= minimumRssi
      if (!isNear || nowMs - seenAtMs > LATE_MS) continue
      const known = lane.tags.get(keyOf(tag))
      if (known) Object.assign(known, { seenMs: nowMs, absentMs })
      else this.#add(deviceId, lane, { tag, technology, seenMs: nowMs, absentMs })
    }
    void this.#work(deviceId)
  }

  onGone(deviceId: string, tag: TagName): void {
    this.#lanes.get(deviceId)?.tags.delete(keyOf(tag))
  }

  /** Makes a new request for each denied tag of a lane, because a new receipt or operator may change the decision. */
  retryRefused(deviceId: string): void {
    const lane = this.#lanes.get(deviceId)
    if (lane) this.#requeue(deviceId, lane, () => true)
  }

  /** Makes a new request for each denied tag whose item has changed. */
  itemsChanged(): void {
    for (const [deviceId, lane] of this.#lanes)
      this.#requeue(deviceId, lane, ({ tag, itemAtRequest }) => this.#statusOf(tag) !== itemAtRequest)
  }

  /** The finding of a lane that had too many tags in the last minute. */
  crowdOf(deviceId: string): Finding | undefined {
    const lane = this.#lanes.get(deviceId)
    if (!lane || this.#parts.platform.clock.elapsed() >= lane.crowdedUntilMs) return undefined
    return { code: 'too_many_tags', detail: crowdDetail(lane), isWarning: true }
  }

  stop(): void {
    this.#isStopped = true
    this.#lanes.clear()
  }

  #laneOf(deviceId: string): Lane {
    const known = this.#lanes.get(deviceId)
    if (known) return known
    const lane: Lane = {
      tags: new Map(),
      isBusy: false,
      budget: budget(this.#parts.platform.clock, UNREGISTERED.most, UNREGISTERED.perSecond),
      crowdedUntilMs: 0,
      dropped: 0,
    }
    this.#lanes.set(deviceId, lane)
    return lane
  }

  #add(deviceId: string, lane: Lane, seen: Pick<Presented, 'tag' | 'technology' | 'seenMs' | 'absentMs'>): void {
    const rank = this.#rankOf(seen.tag)
    if (lane.tags.size >= TAGS_LIMIT) {
      if (!this.#makeRoom(lane, rank)) return this.#drop(deviceId, lane)
      this.#noteCrowd(deviceId, lane)
    }
    lane.tags.set(keyOf(seen.tag), { ...seen, state: 'waiting', rank, itemAtRequest: '', isChanged: false })
  }

  /** Removes a tag that is refused or has a lower rank. False if there is none, or too many were removed already. */
  #makeRoom(lane: Lane, rank: Rank): boolean {
    let victim: [key: string, rank: Rank] | undefined
    for (const [key, each] of lane.tags) {
      const mayGo = each.state === 'refused' ? each.rank <= rank : each.state === 'waiting' && each.rank < rank
      if (mayGo && (!victim || each.rank < victim[1])) victim = [key, each.rank]
    }
    if (!victim) return false
    // Tags that stay would replace each other again and again. Requests of tags without an item have this limit anyway.
    const needsToken = victim[1] === rank && rank !== RANKS.unregistered
    if (needsToken && !lane.budget.spend()) return false
    lane.tags.delete(victim[0])
    return true
  }

  #drop(deviceId: string, lane: Lane): void {
    lane.dropped++
    this.#noteCrowd(deviceId, lane)
  }

  #noteCrowd(deviceId: string, lane: Lane): void {
    const nowMs = this.#parts.platform.clock.elapsed()
    const isNew = nowMs >= lane.crowdedUntilMs
    lane.crowdedUntilMs = nowMs + CROWDED_MS
    if (isNew) this.#parts.onCrowded(deviceId, crowdDetail(lane))
  }

  #rankOf(tag: TagName): Rank {
    const item = this.#parts.find(tag)
    if (!item) return RANKS.unregistered
    return item.status === 'paid' ? RANKS.paid : RANKS.registered
  }

  #statusOf(tag: TagName): string {
    const item = this.#parts.find(tag)
    return item ? `${item.status} ${item.recalled === true} ${item.paying}` : ''
  }

  #dropAbsent(lane: Lane): void {
    const nowMs = this.#parts.platform.clock.elapsed()
    for (const [key, { seenMs, absentMs }] of lane.tags)
      if (absentMs !== null && nowMs - seenMs > absentMs) lane.tags.delete(key)
  }

  #requeue(deviceId: string, lane: Lane, isDue: (presented: Presented) => boolean): void {
    this.#dropAbsent(lane)
    for (const presented of lane.tags.values()) {
      presented.rank = this.#rankOf(presented.tag)
      if (presented.state === 'deciding') presented.isChanged ||= isDue(presented)
      if (presented.state === 'refused' && isDue(presented)) presented.state = 'waiting'
    }
    void this.#work(deviceId)
  }

  /** Makes the requests for the waiting tags, one after the other. */
  async #work(deviceId: string): Promise<void> {
    const lane = this.#laneOf(deviceId)
    if (lane.isBusy) return
    lane.isBusy = true
    try {
      while (!this.#isStopped) {
        this.#dropAbsent(lane)
        const next = nextOf(lane)
        if (!next) return
        if (next.rank === RANKS.unregistered && !lane.budget.spend()) {
          next.itemAtRequest = this.#statusOf(next.tag)
          next.state = 'refused'
          this.#drop(deviceId, lane)
          continue
        }
        next.state = 'deciding'
        next.isChanged = false
        next.itemAtRequest = this.#statusOf(next.tag)
        const isGranted = await this.#parts.request(deviceId, next.tag, next.technology)
        next.state = isGranted ? 'granted' : 'refused'
        if (!isGranted && (next.isChanged || next.itemAtRequest !== this.#statusOf(next.tag))) next.state = 'waiting'
      }
    } finally {
      lane.isBusy = false
    }
  }
}

/** The waiting tag with the highest rank. Of several, the one that waits longest. */
function nextOf({ tags }: Lane): Presented | undefined {
  let next: Presented | undefined
  for (const each of tags.values()) if (each.state === 'waiting' && (!next || each.rank > next.rank)) next = each
  return next
}

function crowdDetail({ dropped }: Lane): string {
  return `too many tags are at the reader: move tagged goods and blank labels away; ${dropped} times since the start a tag got no decision`
}
