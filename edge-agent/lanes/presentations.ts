import type { TagName, TagRead } from '../../device-drivers/drivers/device.ts'
import type { Platform } from '../../policy/platform.ts'
import type { TagTechnology } from '../../policy/vocabulary.ts'
import type { KnownItem } from '../items/item-table.ts'

export interface PresentingReader {
  /** A tag that was not read for so long was taken away, ms; null: the reader says so itself. */
  readonly absentMs: number | null
  /** What is heard more weakly is not meant, dBm. */
  readonly minimumRssi: number | undefined
}

export interface PresentationsParts {
  platform: Platform
  find(tag: TagName): KnownItem | undefined
  /** Asks for this tag; answers whether it was authorized. Must not throw. `technology` is absent if the reader cannot tell. */
  request(deviceId: string, tag: TagName, technology: TagTechnology | undefined): Promise<boolean>
}

interface Presented {
  readonly tag: TagName
  readonly technology: TagTechnology | undefined
  seenMs: number
  absentMs: number | null
  state: 'waiting' | 'asking' | 'granted' | 'refused'
  /** What was known of the item when it was asked for. */
  itemAtRequest: string
  /** Something has changed while it was being asked for. */
  isChanged: boolean
}

interface Lane {
  readonly tags: Map<string, Presented>
  isBusy: boolean
}

/** Reads that a reader kept while the network was away present nothing, ms. */
const LATE_MS = 2_000
/** Tags that lie at a lane; what comes on top waits until one was taken away. */
const TAGS_LIMIT = 100

const keyOf = (tag: TagName) => ('epc' in tag ? `E${tag.epc}` : `U${tag.tagUid}`)

/** Nothing lies anywhere yet. */
export function openPresentations(parts: PresentationsParts): Presentations {
  return new Presentations(parts)
}

/**
 *   read ─ meant? ─ lies there already? ─▶ waits its turn ─ still there? ─▶ asked for, once ─▶ lies there
 *                                               ▲                                                 │
 *                                               └── refused, and then: paid · receipt · operator ─┘
 *
 * Tags that are presented at lanes which are no gates. One presentation is one request: a tag that lies there
 * is asked for again only when something has changed for it. A lane does one thing after the other, as a
 * person does, and nothing is moved for a tag that was taken away meanwhile.
 */
export class Presentations {
  readonly #parts: PresentationsParts
  readonly #lanes = new Map<string, Lane>()
  #isStopped = false

  constructor(parts: PresentationsParts) {
    this.#parts = parts
  }

  /** A reader of this lane sees tags. */
  onReads(deviceId: string, reads: readonly TagRead[], { absentMs, minimumRssi }: PresentingReader): void {
    const lane = this.#laneOf(deviceId)
    this.#dropAbsent(lane)
    const nowMs = this.#parts.platform.clock.elapsed()
    for (const { tag, technology, rssiDbm, seenAtMs } of reads) {
      const isMeant = minimumRssi === undefined || rssiDbm === undefined || rssiDbm >= minimumRssi
      if (!isMeant || nowMs - seenAtMs > LATE_MS) continue
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

  /** Something was shown at the lane that may change the answer: what was refused and lies there is asked for again. */
  retryRefused(deviceId: string): void {
    const lane = this.#lanes.get(deviceId)
    if (lane) this.#requeue(deviceId, lane, () => true)
  }

  /** Items have changed: what was refused and has changed since is asked for again. */
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
    return item ? `${item.status} ${item.paying}` : ''
  }

  #dropAbsent(lane: Lane): void {
    const nowMs = this.#parts.platform.clock.elapsed()
    for (const [key, { seenMs, absentMs }] of lane.tags)
      if (absentMs !== null && nowMs - seenMs > absentMs) lane.tags.delete(key)
  }

  #requeue(deviceId: string, lane: Lane, isDue: (presented: Presented) => boolean): void {
    this.#dropAbsent(lane)
    for (const presented of lane.tags.values()) {
      if (presented.state === 'asking') presented.isChanged ||= isDue(presented)
      if (presented.state === 'refused' && isDue(presented)) presented.state = 'waiting'
    }
    void this.#work(deviceId)
  }

  /** Asks for one tag after the other. */
  async #work(deviceId: string): Promise<void> {
    const lane = this.#laneOf(deviceId)
    if (lane.isBusy) return
    lane.isBusy = true
    try {
      while (!this.#isStopped) {
        this.#dropAbsent(lane)
        const next = [...lane.tags.values()].find(({ state }) => state === 'waiting')
        if (!next) return
        next.state = 'asking'
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
