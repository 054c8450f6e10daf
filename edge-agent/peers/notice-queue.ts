import type { AnnouncedRelease } from '../../policy/documents/release-notice.ts'
import { retryDelays, type Cancel, type Platform } from '../../policy/platform.ts'
import type { Log } from '../log.ts'

const FIRST_RETRY_MS = 250
const LONGEST_RETRY_MS = 15_000
/** Requests to one agent at once; further releases wait for their turn. */
const AT_ONCE = 8
/** Notices that wait for one agent; the oldest makes room. */
const WAITING_LIMIT = 500

export interface NoticeQueueParts {
  platform: Pick<Platform, 'timers' | 'random'>
  log: Log
  /** `done`: the agent accepted the notice, or never will. */
  post(release: AnnouncedRelease): Promise<'done' | 'later'>
  /** The oldest notice was dropped. */
  onFull(): void
}

/**
 *   release ─ fewer than 8 under way? ─▶ post ─ done ─▶ the newest that waits
 *                    └ no ─▶ waits ◀─ later ─┘  ▲
 *                              └─ pause with jitter, at most 15 s
 *
 * Release notices for one agent. The newest is sent first, because its shopper leaves now.
 */
export class NoticeQueue {
  readonly #parts: NoticeQueueParts
  /** The newest last. */
  readonly #waiting: AnnouncedRelease[] = []
  #inFlight = 0
  #delays: Generator<number, never>
  #retry: Cancel | undefined
  #isStopped = false

  constructor(parts: NoticeQueueParts) {
    this.#parts = parts
    this.#delays = this.#newDelays()
  }

  get size(): number {
    return this.#waiting.length + this.#inFlight
  }

  add(release: AnnouncedRelease): void {
    if (this.#inFlight < AT_ONCE) void this.#deliver(release)
    else this.#keep(release)
  }

  stop(): void {
    this.#isStopped = true
    this.#retry?.()
  }

  async #deliver(release: AnnouncedRelease): Promise<void> {
    const { post, log } = this.#parts
    this.#inFlight++
    // What fails here is a fault of ours, and no release depends on it.
    const result = await post(release).catch((error: unknown) => {
      log.error({ err: error }, 'a release notice could not be sent')
      return 'done' as const
    })
    this.#inFlight--
    if (this.#isStopped) return
    if (result === 'later') {
      this.#keep(release)
      this.#retryLater()
      return
    }
    this.#delays = this.#newDelays()
    this.#retry?.()
    this.#retry = undefined
    this.#sendNext()
  }

  #retryLater(): void {
    this.#retry ??= this.#parts.platform.timers.after(this.#delays.next().value, () => {
      this.#retry = undefined
      this.#sendNext()
    })
  }

  #sendNext(): void {
    const release = this.#inFlight < AT_ONCE ? this.#waiting.pop() : undefined
    if (release) void this.#deliver(release)
  }

  #keep(release: AnnouncedRelease): void {
    if (this.#waiting.length >= WAITING_LIMIT) {
      this.#waiting.shift()
      this.#parts.onFull()
    }
    this.#waiting.push(release)
  }

  #newDelays(): Generator<number, never> {
    return retryDelays(this.#parts.platform.random, FIRST_RETRY_MS, LONGEST_RETRY_MS)
  }
}
