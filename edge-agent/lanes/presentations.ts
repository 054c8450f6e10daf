import type { TagName, TagRead } from '../../device-drivers/kit/device.ts'
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
}

interface Presented {
  readonly tag: TagName
  readonly technology: TagTechnology | undefined
  seenMs: number
  absentMs: number | null
  state: 'waiting' | 'deciding' | 'granted' | 'refused'
  /** Item status at the time of the request. */
  itemAtRequest: string
  /** True if a receipt, operator or item changed during the request. */
  isChanged: boolean
}

interface Lane {
  readonly tags: Map<string, Presented>
  isBusy: boolean
}

/** Maximum age of a read that counts as a presentation, ms. A reader buffers reads while its network is down. */
const LATE_MS = 2_000
/** Maximum tags at a lane. The lane ignores further tags until one is removed. */
const TAGS_LIMIT = 100

const keyOf = (tag: TagName) => ('epc' in tag ? `E${tag.epc}` : `U${tag.tagUid}`)

/** Starts without tags. */
export function openPresentations(parts: PresentationsParts): Presentations {
  return new Presentations(parts)
}

/**
 * Tags that are presented at lanes other than gates. Each presentation makes one request. If the request is denied and
 * the tag stays, a new item status, receipt or operator causes another request. A lane handles one tag at a time.
 * Before each request, the lane drops tags that were removed.
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
      else if (lane.tags.size < TAGS_LIMIT) {
        const presented = { tag, technology, seenMs: nowMs, absentMs }
        lane.tags.set(keyOf(tag), { ...presented, state: 'waiting', itemAtRequest: '', isChanged: false })
      }
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

  stop(): void {
    this.#isStopped = true
    this.#lanes.clear()
  }

  #laneOf(deviceId: string): Lane {
    const known = this.#lanes.get(deviceId)
    if (known) return known
    const lane: Lane = { tags: new Map(), isBusy: false }
    this.#lanes.set(deviceId, lane)
    return lane
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
        const next = [...lane.tags.values()].find(({ state }) => state === 'waiting')
        if (!next) return
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
