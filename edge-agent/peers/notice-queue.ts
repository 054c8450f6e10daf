import type { AnnouncedRelease } from '../../policy/documents/release-notice.ts'
import { retryDelays, type Cancel, type Platform } from '../../policy/platform.ts'
import type { Log } from '../log.ts'

const FIRST_RETRY_MS = 250
const LONGEST_RETRY_MS = 15_000
/** Maximum concurrent requests to one agent. Further notices wait. */
const AT_ONCE = 8
/** Maximum waiting notices for one agent. A further notice replaces the oldest notice. */
const WAITING_LIMIT = 500

export interface NoticeQueueParts {
  platform: Pick<Platform, 'timers' | 'random'>
  log: Log
  /** Sends a notice. `done`: the agent accepted the notice, or a retry is useless. */
  post(release: AnnouncedRelease): Promise<'done' | 'later'>
  /** Called when the queue discards its oldest notice. */
  onFull(): void
}

/**
 * Release notices for one agent. The queue sends the newest notice first, because the shopper with these goods leaves
 * now. After an attempt without an answer, the queue pauses with jitter, at most 15 s.
 */
export class NoticeQueue {
  readonly #parts: NoticeQueueParts
  /** Waiting notices, newest last. */
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
    else this.#enqueue(release)
  }

  stop(): void {
    this.#isStopped = true
    this.#retry?.()
  }

  async #deliver(release: AnnouncedRelease): Promise<void> {
    const { post, log } = this.#parts
    this.#inFlight++
    // If `post` rejects, this program has a defect. The defect must not stop the queue.
    const result = await post(release).catch((error: unknown) => {
      log.error({ err: error }, 'a release notice could not be sent')
      return 'done' as const
    })
    this.#inFlight--
    if (this.#isStopped) return
    if (result === 'later') {
      this.#enqueue(release)
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

  #enqueue(release: AnnouncedRelease): void {
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
