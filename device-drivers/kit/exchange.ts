import { deadline, pause } from '../../policy/platform.ts'
import type { Cancel, Clock, Platform, Timers } from '../../policy/platform.ts'
import type { Noise, ResyncingCodec } from './protocol/codec.ts'
import type { ByteLink } from '../transports/byte-link.ts'
import type { ProtocolClient } from '../transports/shared-links.ts'

/** A request on a link that carries one request at a time. */
interface ExchangeRequest<Frame> {
  readonly frame: Frame
  /** Name of the device, for a person. */
  readonly target: string
  /** Time limit of the answer, ms. */
  readonly timeoutMs: number
  /** True if this frame is the answer to the request. Undefined: the request has no answer. */
  isAnswer?(frame: Frame): boolean
  /** Commands are sent before polls, so that polls do not delay a siren or the end of a pulse. Default: command. */
  readonly lane?: Lane
  /** True if a poll must wait while the link is held; see `Exchange.hold`. Called when the poll could be sent. */
  yieldsToHold?(): boolean
  /** Cancels a waiting request. The signal has no effect after the first byte was sent. */
  readonly signal?: AbortSignal
  /** Called before the first byte is passed to the link. */
  readonly onSend?: () => void
}

export type Lane = 'command' | 'poll'

/** No valid answer. `possiblySent`: the device may have received the request. */
export interface LostAnswer {
  readonly kind: 'lost'
  readonly possiblySent: boolean
  readonly detail: string
}

/** `sent`: the request was sent, and the protocol defines no answer to it. */
export type ExchangeAnswer<Frame> =
  | { readonly kind: 'answered'; readonly frame: Frame }
  | { readonly kind: 'sent' }
  | LostAnswer

interface ExchangeOptions<Frame> {
  readonly codec: ResyncingCodec<Frame>
  /** Minimum quiet time between two frames, ms. */
  readonly gapMs: number
  /** Quiet time after a lost answer, ms. A late answer must not be taken for the answer to the next request. */
  readonly quarantineMs: number
  /** Called for a frame that is no answer. Returns what to report as noise, or null for an expected frame. */
  onStray(frame: Frame): Noise | null
}

const MAX_WAITING = 64
/** Silence after which an incomplete frame is discarded, ms. USB adapters hold bytes back for up to 16 ms. */
const SILENCE_MS = 50

interface Job<Frame> {
  readonly request: ExchangeRequest<Frame>
  readonly settle: (answer: ExchangeAnswer<Frame>) => void
}

const text = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Starts to listen on a link. */
export function startExchange<Frame>(
  options: ExchangeOptions<Frame>,
  link: ByteLink,
  platform: Platform,
): Exchange<Frame> {
  return new Exchange(options, link, platform)
}

/**
 * Requests and answers on one link, for protocols in which a device sends only on request. Requests wait in a queue; a
 * frame that is no answer goes to `onStray`.
 */
export class Exchange<Frame> implements ProtocolClient {
  readonly #options: ExchangeOptions<Frame>
  readonly #link: ByteLink
  readonly #codec: ResyncingCodec<Frame>
  readonly #clock: Clock
  readonly #timers: Timers
  readonly #lanes: Record<Lane, Job<Frame>[]> = { command: [], poll: [] }
  readonly #listeners = new Set<(noise: Noise) => void>()
  #pending: Job<Frame> | null = null
  #working = false
  #holds = 0
  #endReason: string | null = null
  #quietUntil = 0
  #cancelSilence: Cancel = () => {}
  #resolveEnded = (_reason: string) => {}
  readonly ended = new Promise<string>((resolve) => {
    this.#resolveEnded = resolve
  })

  constructor(options: ExchangeOptions<Frame>, link: ByteLink, platform: Platform) {
    this.#options = options
    this.#link = link
    this.#codec = options.codec
    this.#clock = platform.clock
    this.#timers = platform.timers
    void this.#listen()
  }

  /** Never rejects. */
  request(request: ExchangeRequest<Frame>): Promise<ExchangeAnswer<Frame>> {
    return new Promise((settle) => {
      const unsent = (detail: string) => settle({ kind: 'lost', possiblySent: false, detail })
      if (this.#endReason) return unsent(this.#endReason)
      const lane = this.#lanes[request.lane ?? 'command']
      if (lane.length >= MAX_WAITING) return unsent(`${MAX_WAITING} requests wait for this link already`)
      lane.push({ request, settle })
      void this.#work()
    })
  }

  /**
   * Keeps the link free until the returned function is called. Polls that `yieldsToHold` wait, so that a request
   * without an answer does not delay the end of a pulse.
   */
  hold(): Cancel {
    let isHeld = true
    this.#holds++
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#holds--
      void this.#work()
    }
  }

  /** Calls `listener` with bytes that are no answer, until the returned function is called. */
  onNoise(listener: (noise: Noise) => void): Cancel {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  #emitNoise(noise: Noise | null): void {
    if (noise) for (const listener of this.#listeners) listener(noise)
  }

  #accept(frame: Frame): void {
    if (this.#pending?.request.isAnswer?.(frame)) this.#pending.settle({ kind: 'answered', frame })
    else this.#emitNoise(this.#options.onStray(frame))
  }

  #onSilence(): void {
    for (const frame of this.#codec.silence()) this.#accept(frame)
    this.#emitNoise(this.#codec.takeNoise())
  }

  #onChunk(chunk: Uint8Array): void {
    this.#cancelSilence()
    this.#quietUntil = Math.max(this.#quietUntil, this.#clock.elapsed() + this.#options.gapMs)
    for (const frame of this.#codec.push(chunk)) this.#accept(frame)
    this.#emitNoise(this.#codec.takeNoise())
    if (this.#codec.held > 0) this.#cancelSilence = this.#timers.after(SILENCE_MS, () => this.#onSilence())
  }

  #end(reason: string): void {
    if (this.#endReason) return
    this.#endReason = reason
    this.#cancelSilence()
    this.#pending?.settle({ kind: 'lost', possiblySent: true, detail: reason })
    for (const lane of Object.values(this.#lanes))
      for (const job of lane.splice(0)) job.settle({ kind: 'lost', possiblySent: false, detail: reason })
    this.#resolveEnded(reason)
  }

  async #listen(): Promise<void> {
    try {
      for await (const chunk of this.#link.bytes) this.#onChunk(chunk)
      this.#end('the device closed the link')
    } catch (error) {
      this.#end(text(error))
    }
  }

  async #exchange(request: ExchangeRequest<Frame>): Promise<ExchangeAnswer<Frame>> {
    const wait = this.#quietUntil - this.#clock.elapsed()
    if (wait > 0) await pause(this.#timers, wait)
    if (this.#endReason) return { kind: 'lost', possiblySent: false, detail: this.#endReason }
    if (request.signal?.aborted) return { kind: 'lost', possiblySent: false, detail: 'cancelled before it was sent' }
    const limit = deadline(this.#timers, request.timeoutMs)
    const answer = await new Promise<ExchangeAnswer<Frame>>((settle) => {
      this.#pending = { request, settle }
      const lost = (detail: string) => settle({ kind: 'lost', possiblySent: true, detail })
      const onTimeout = () => lost(`${request.target} gave no answer within ${request.timeoutMs} ms`)
      limit.signal.addEventListener('abort', onTimeout, { once: true })
      request.onSend?.()
      this.#link
        .write(this.#codec.encode(request.frame), limit.signal)
        .then(() => {
          if (!request.isAnswer) settle({ kind: 'sent' })
        })
        .catch((error: unknown) => lost(text(error)))
    })
    limit.done()
    this.#pending = null
    if (answer.kind === 'lost' && this.#options.quarantineMs > 0) {
      this.#onSilence()
      this.#quietUntil = this.#clock.elapsed() + this.#options.quarantineMs
    }
    return answer
  }

  #next(): Job<Frame> | undefined {
    const { command, poll } = this.#lanes
    if (command.length > 0) return command.shift()
    const at = poll.findIndex(({ request }) => this.#holds === 0 || !request.yieldsToHold?.())
    return at === -1 ? undefined : poll.splice(at, 1)[0]
  }

  async #work(): Promise<void> {
    if (this.#working) return
    this.#working = true
    for (let job = this.#next(); job; job = this.#next()) job.settle(await this.#exchange(job.request))
    this.#working = false
  }
}
