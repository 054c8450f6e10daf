import { pause, type Platform, type Cancel } from '../../policy/platform.ts'
import type { ExchangeAnswer } from './exchange.ts'
import type { TagSighting } from './protocol/tag-sighting.ts'
import type { TagRead, DeviceEvent, TagName } from './device.ts'
import type { ReaderClock } from '../llrp/reader-clock.ts'

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

interface PresenceOptions {
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

/**
 * Converts a sighting to a read. Converts the reader's timestamp to the agent's clock, so that a buffered read keeps
 * its age.
 */
export function readOf({ epc, antenna, rssiDbm, utcUs }: TagSighting, clock: ReaderClock): TagRead {
  return {
    tag: { epc },
    seenAtMs: clock.seenAt({ utcUs }),
    ...(antenna === undefined ? {} : { antenna }),
    ...(rssiDbm === undefined ? {} : { rssiDbm }),
  }
}

/**
 * Keeps a reader in continuous mode, in which the reader sends tags without requests. A reader leaves this mode without
 * notice, for example after a power failure. In this mode the reader always sends something, at least "no tag". If the
 * reader is quiet, the agent sends a stop command, waits for the answer, and starts the reader again.
 */
export interface ContinuousReading {
  /** Call this function when the reader has sent data. */
  noteActivity(): void
  /** Stops reading, so that a command can be sent. Resolves with true if the reader confirms the stop. */
  suspend(): Promise<boolean>
  /** Ends one `suspend`. Reading restarts when `resume` was called as often as `suspend`. */
  resume(): Promise<void>
}

interface ContinuousReadingOptions {
  readonly platform: Platform
  /** Time without data after which reading is restarted, ms. */
  readonly quietMs: number
  /** True if the reader already sends tags; otherwise reading starts with the first `resume`. */
  readonly isReading?: boolean
  /** Ends the reading. */
  readonly over: AbortSignal
  stop(): Promise<ExchangeAnswer<unknown>>
  /**
   * Starts reading. If the start needs several commands, call `isWanted` before the last one, because a `suspend` may
   * have been called meanwhile.
   */
  start(isWanted: () => boolean): Promise<unknown>
  /** Called when three stop commands in a row had no answer. */
  onUnresponsive(detail: string): void
}

const CHECK_EVERY_MS = 250
const MAX_MISSED = 3

/** Starts the watch that keeps a reader in continuous mode. */
export function startContinuousReading({
  platform,
  quietMs,
  isReading = false,
  over,
  stop,
  start,
  onUnresponsive,
}: ContinuousReadingOptions): ContinuousReading {
  const { clock, timers } = platform
  let suspensions = isReading ? 0 : 1
  let lastActivityMs = clock.elapsed()
  let missed = 0

  async function stopNow(): Promise<boolean> {
    const answer = await stop()
    if (answer.kind !== 'lost') {
      missed = 0
      return answer.kind === 'answered'
    }
    if (++missed === MAX_MISSED && !over.aborted) onUnresponsive(`${MAX_MISSED} times in a row: ${answer.detail}`)
    return false
  }

  const isWanted = () => suspensions === 0 && !over.aborted

  async function startNow(): Promise<void> {
    lastActivityMs = clock.elapsed()
    // A `suspend` during this start sends its stop command after the start command.
    if (isWanted()) await start(isWanted)
  }

  async function watch(): Promise<void> {
    while (!over.aborted) {
      await pause(timers, CHECK_EVERY_MS, over).catch(() => {})
      if (over.aborted || suspensions > 0 || clock.elapsed() - lastActivityMs < quietMs) continue
      if (await stopNow()) await startNow()
    }
  }

  void watch()
  return {
    noteActivity: () => void (lastActivityMs = clock.elapsed()),
    suspend() {
      suspensions++
      return stopNow()
    },
    resume() {
      suspensions--
      return startNow()
    },
  }
}
