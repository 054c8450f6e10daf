import type { Cancel, Platform } from '../../policy/platform.ts'
import type { DeviceEvent, TagName, TagRead } from './device.ts'

/** Tracks the tags at a reader that reports each tag many times a second. */
export interface TagPresence {
  /** Emits `tags` for new tags, and for tags whose repeat time has passed. */
  seen(reads: readonly TagRead[]): void
  /** True if the tag was read within `goneMs`. */
  has(tag: TagName): boolean
  /** Time of the last read, ms of the elapsed clock; null if the tag is gone. */
  lastSeenMs(tag: TagName): number | null
  /** Stops all events. */
  stop(): void
}

export interface PresenceOptions {
  readonly platform: Platform
  /** Interval at which a present tag is reported again, per antenna, ms. */
  readonly repeatMs: number
  /** Time without a read after which a tag is gone, ms. */
  readonly goneMs: number
  emit(event: DeviceEvent): void
}

interface Present {
  readonly tag: TagName
  seenMs: number
  /** Time of the last report, by antenna. */
  readonly reportedMs: Map<number, number>
}

/**
 * Maximum number of tracked tags; pads and stations read fewer. If there are more, the oldest tag is reported as gone.
 */
const MAX_PRESENT = 1_000

const keyOf = (tag: TagName): string => ('epc' in tag ? `epc ${tag.epc}` : `uid ${tag.tagUid}`)

/** Makes a tracker of at most 1,000 tags. */
export function tagPresence({ platform, repeatMs, goneMs, emit }: PresenceOptions): TagPresence {
  const { clock, timers } = platform
  /** Ordered by the last read, oldest first. */
  const present = new Map<string, Present>()
  let cancel: Cancel | null = null

  function leave(key: string, { tag }: Present): void {
    present.delete(key)
    emit({ type: 'tag_gone', tag })
  }

  function sweep(): void {
    cancel = null
    for (const [key, entry] of present) {
      const left = entry.seenMs + goneMs - clock.elapsed()
      if (left > 0) {
        cancel = timers.after(left, sweep)
        return
      }
      leave(key, entry)
    }
  }

  function isDue(read: TagRead): boolean {
    const now = clock.elapsed()
    const key = keyOf(read.tag)
    const entry = present.get(key) ?? { tag: read.tag, seenMs: now, reportedMs: new Map<number, number>() }
    present.delete(key)
    present.set(key, entry)
    entry.seenMs = now
    const antenna = read.antenna ?? 0
    const lastReportedMs = entry.reportedMs.get(antenna)
    if (lastReportedMs !== undefined && now - lastReportedMs < repeatMs) return false
    entry.reportedMs.set(antenna, now)
    return true
  }

  return {
    seen(reads) {
      const due = reads.filter(isDue)
      if (due.length > 0) emit({ type: 'tags', reads: due })
      for (const [key, entry] of present) {
        if (present.size <= MAX_PRESENT) break
        leave(key, entry)
      }
      if (present.size > 0) cancel ??= timers.after(goneMs, sweep)
    },
    has: (tag) => present.has(keyOf(tag)),
    lastSeenMs: (tag) => present.get(keyOf(tag))?.seenMs ?? null,
    stop() {
      cancel?.()
      cancel = null
      present.clear()
    },
  }
}
