import type { TagName, TagRead } from '../../device-drivers/drivers/device.ts'
import type { Platform } from '../../policy/platform.ts'
import type { TagTechnology } from '../../policy/vocabulary.ts'
import type { KnownItem } from '../items/item-table.ts'

/**
 *   read ─ meant? ─ lies there already? ─▶ waits its turn ─ still there? ─▶ asked for, once ─▶ lies there
 *                                               ▲                                                 │
 *                                               └── refused, and then: paid · receipt · operator ─┘
 *
 * Tags that are presented at lanes which are no gates. One presentation is one request: a tag that lies there
 * is asked for again only when something has changed for it. A lane does one thing after the other, as a
 * person does, and nothing is moved for a tag that was taken away meanwhile.
 */
export interface Presentations {
  /** A reader of this lane sees tags. */
  onReads(laneId: string, reads: readonly TagRead[], reader: PresentingReader): void
  onGone(laneId: string, tag: TagName): void
  /** Something was shown at the lane that may change the answer: what was refused and lies there is asked for again. */
  again(laneId: string): void
  /** Items have changed: what was refused and has changed since is asked for again. */
  itemsChanged(): void
  stop(): void
}

export interface PresentingReader {
  /** A tag that was not read for so long was taken away, ms; null: the reader says so itself. */
  readonly awayMs: number | null
  /** What is heard more weakly is not meant, dBm. */
  readonly nearDbm: number | undefined
}

export interface PresentationsParts {
  platform: Platform
  find(tag: TagName): KnownItem | undefined
  /** Asks for this tag; answers whether it was authorized. Must not throw. `technology` is absent if the reader cannot tell. */
  ask(laneId: string, tag: TagName, technology: TagTechnology | undefined): Promise<boolean>
}

interface Presented {
  readonly tag: TagName
  readonly technology: TagTechnology | undefined
  seenMs: number
  awayMs: number | null
  state: 'waiting' | 'asking' | 'granted' | 'refused'
  /** What was known of the item when it was asked for. */
  askedAs: string
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

/** Nothing lies anywhere yet. */
export function openPresentations({ platform, find, ask }: PresentationsParts): Presentations {
  const { clock } = platform
  const lanes = new Map<string, Lane>()
  let isStopped = false

  function laneOf(laneId: string): Lane {
    const known = lanes.get(laneId)
    if (known) return known
    const lane: Lane = { tags: new Map(), isBusy: false }
    lanes.set(laneId, lane)
    return lane
  }

  const keyOf = (tag: TagName) => ('epc' in tag ? `E${tag.epc}` : `U${tag.tagUid}`)
  const isAway = ({ seenMs, awayMs }: Presented) => awayMs !== null && clock.elapsed() - seenMs > awayMs

  function statusOf(tag: TagName): string {
    const item = find(tag)
    return item ? `${item.status} ${item.paying}` : ''
  }

  function forgetGone(lane: Lane): void {
    for (const [key, presented] of lane.tags) if (isAway(presented)) lane.tags.delete(key)
  }

  async function work(laneId: string): Promise<void> {
    const lane = laneOf(laneId)
    if (lane.isBusy) return
    lane.isBusy = true
    try {
      while (!isStopped) {
        forgetGone(lane)
        const next = [...lane.tags.values()].find(({ state }) => state === 'waiting')
        if (!next) return
        next.state = 'asking'
        next.isChanged = false
        next.askedAs = statusOf(next.tag)
        const isGranted = await ask(laneId, next.tag, next.technology)
        next.state = isGranted ? 'granted' : 'refused'
        if (!isGranted && (next.isChanged || next.askedAs !== statusOf(next.tag))) next.state = 'waiting'
      }
    } finally {
      lane.isBusy = false
    }
  }

  function askAgain(laneId: string, lane: Lane, isDue: (presented: Presented) => boolean): void {
    forgetGone(lane)
    for (const presented of lane.tags.values()) {
      if (presented.state === 'asking') presented.isChanged ||= isDue(presented)
      if (presented.state === 'refused' && isDue(presented)) presented.state = 'waiting'
    }
    void work(laneId)
  }

  return {
    onReads(laneId, reads, { awayMs, nearDbm }) {
      const lane = laneOf(laneId)
      forgetGone(lane)
      const nowMs = clock.elapsed()
      for (const { tag, technology, rssiDbm, seenAtMs } of reads) {
        const isMeant = nearDbm === undefined || rssiDbm === undefined || rssiDbm >= nearDbm
        if (!isMeant || nowMs - seenAtMs > LATE_MS) continue
        const known = lane.tags.get(keyOf(tag))
        if (known) Object.assign(known, { seenMs: nowMs, awayMs })
        else if (lane.tags.size < TAGS_LIMIT) {
          const presented = { tag, technology, seenMs: nowMs, awayMs }
          lane.tags.set(keyOf(tag), { ...presented, state: 'waiting', askedAs: '', isChanged: false })
        }
      }
      void work(laneId)
    },
    onGone: (laneId, tag) => void lanes.get(laneId)?.tags.delete(keyOf(tag)),
    again(laneId) {
      const lane = lanes.get(laneId)
      if (lane) askAgain(laneId, lane, () => true)
    },
    itemsChanged() {
      for (const [laneId, lane] of lanes) askAgain(laneId, lane, ({ tag, askedAs }) => statusOf(tag) !== askedAs)
    },
    stop() {
      isStopped = true
      lanes.clear()
    },
  }
}
