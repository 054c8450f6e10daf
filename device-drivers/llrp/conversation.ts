import { setMaxListeners } from 'node:events'
import { deadline, type Cancel, type Platform, type Timers } from '../../policy/platform.ts'
import type { Noise } from '../kit/protocol/codec.ts'
import { decodeMessage, encodeMessage } from './protocol/binary.ts'
import { first, message, type Message, answerTo, type Parameter } from './protocol/elements.ts'
import { llrpCodec, type LlrpFrame } from './protocol/frames.ts'
import { MESSAGES, type MessageName } from './protocol/messages.ts'
import { isTagReport, readTagReports, type TagSighting } from './protocol/tag-reports.ts'
import type { ByteLink } from '../transports/byte-link.ts'
import type { ProtocolClient } from '../transports/shared-links.ts'

const reasonOf = (signal: AbortSignal): string =>
  signal.reason instanceof Error ? signal.reason.message : String(signal.reason)

/** Result of a request. */
type LlrpAnswer<N extends MessageName = MessageName> =
  | { readonly kind: 'answered'; readonly message: Message<N> }
  /** The reader refused the request. `detail` is the reader's reason. */
  | { readonly kind: 'refused'; readonly detail: string }
  /** No valid answer. `possiblySent`: the reader may have received the request. */
  | { readonly kind: 'lost'; readonly possiblySent: boolean; readonly detail: string }

interface RequestOptions {
  readonly timeoutMs: number
  /** Abandons the request. */
  readonly signal?: AbortSignal
  /** Called before the first byte is passed to the link. */
  readonly onSend?: () => void
}

/** Receives the messages of a connection, in their order. */
export interface LlrpListener {
  onTags(seen: readonly TagSighting[]): void
  onNotification(notification: Message<'READER_EVENT_NOTIFICATION'>): void
  /** Receives complete reports, for results of tag operations. While undefined, reports are not decoded in full. */
  onReport?: ((report: Message<'RO_ACCESS_REPORT'>) => void) | undefined
  onNoise(noise: Noise): void
}

const REPORT = MESSAGES.RO_ACCESS_REPORT.type
const KEEPALIVE = MESSAGES.KEEPALIVE.type
const MAX_PENDING = 64
/** If this number of bytes contains no message, the peer is no LLRP reader. */
const MAX_NOISE = 65_536
/** Time after which a codec that resynchronises discards a wrong message start, ms. */
const FREE_AFTER_MS = 1_000

interface Pending {
  readonly answer: string
  settle(answer: LlrpAnswer): void
}

/** One connection to a reader. */
export class LlrpConversation implements ProtocolClient {
  readonly #link: ByteLink
  readonly #platform: Platform
  readonly #listener: LlrpListener
  readonly #timers: Timers
  readonly #codec = llrpCodec()
  readonly #pending = new Map<number, Pending>()
  readonly #over = new AbortController()
  #lastId = 0
  #lastReceivedAt: number
  #noiseInARow = 0
  #stopWatch: Cancel = () => {}
  #stopSilence: Cancel = () => {}
  #resolveEnded = (_reason: string) => {}
  readonly ended = new Promise<string>((resolve) => {
    this.#resolveEnded = resolve
  })

  constructor(link: ByteLink, platform: Platform, listener: LlrpListener) {
    this.#link = link
    this.#platform = platform
    this.#listener = listener
    this.#timers = platform.timers
    // Each pending request adds a listener, and there are at most MAX_PENDING requests.
    setMaxListeners(0, this.#over.signal)
    this.#lastReceivedAt = platform.clock.elapsed()
    void this.#listen()
  }

  /** Sends a request. `make` builds the message with the given id; the answer repeats this id. Never rejects. */
  async request<A extends MessageName>(
    answer: A,
    make: (id: number) => Message,
    options: RequestOptions,
  ): Promise<LlrpAnswer<A>> {
    const unsent = (detail: string): LlrpAnswer<A> => ({ kind: 'lost', possiblySent: false, detail })
    if (this.#over.signal.aborted) return unsent((this.#over.signal.reason as Error).message)
    if (options.signal?.aborted) return unsent(reasonOf(options.signal))
    if (this.#pending.size >= MAX_PENDING) return unsent(`${MAX_PENDING} requests wait for this reader already`)
    const id = this.#newId()
    const sent = make(id)
    const bytes = encodeMessage(sent)
    const limit = deadline(this.#timers, options.timeoutMs, options.signal)
    const answered = new Promise<LlrpAnswer>((resolve) => {
      this.#pending.set(id, { answer: answerTo(sent.name) ?? answer, settle: resolve })
      const giveUp = () => {
        const why = options.signal?.aborted ? `: ${reasonOf(options.signal)}` : ` within ${options.timeoutMs} ms`
        const detail = `no answer to ${sent.name}${why}`
        resolve({ kind: 'lost', possiblySent: true, detail })
      }
      limit.signal.addEventListener('abort', giveUp, { once: true })
    })
    options.onSend?.()
    void this.#write(bytes, limit.signal)
    const result = await answered
    limit.done()
    this.#pending.delete(id)
    // This cast is safe, because `#onAnswer` accepts only messages of this name.
    return result as LlrpAnswer<A>
  }

  /** Sends a message that has no answer. */
  send(make: (id: number) => Message): void {
    if (!this.#over.signal.aborted) void this.#write(encodeMessage(make(this.#newId())), this.#over.signal)
  }

  /** Ends the connection when `ms` milliseconds pass without a message. A second call replaces the limit. */
  expectMessageWithin(ms: number): void {
    this.#stopWatch()
    if (this.#over.signal.aborted) return
    const check = () => {
      const quietMs = this.#platform.clock.elapsed() - this.#lastReceivedAt
      if (quietMs >= ms) this.end(`nothing from the reader for ${Math.round(ms / 1_000)} s`)
      else this.#stopWatch = this.#timers.after(ms - quietMs, check)
    }
    this.#stopWatch = this.#timers.after(ms, check)
  }

  /** Ends the connection. */
  end(reason: string): void {
    if (this.#over.signal.aborted) return
    this.#over.abort(new DOMException(reason, 'AbortError'))
    this.#stopWatch()
    this.#stopSilence()
    for (const { settle } of this.#pending.values()) settle({ kind: 'lost', possiblySent: true, detail: reason })
    this.#pending.clear()
    this.#resolveEnded(reason)
  }

  get isOver(): boolean {
    return this.#over.signal.aborted
  }

  #newId(): number {
    this.#lastId = this.#lastId >= 0xffffffff ? 1 : this.#lastId + 1
    return this.#lastId
  }

  #write(bytes: Uint8Array, signal: AbortSignal): Promise<void> {
    return this.#link.write(bytes, signal).catch((error: unknown) => {
      if (!signal.aborted) this.end(error instanceof Error ? error.message : String(error))
    })
  }

  #noise(more: Noise): void {
    this.#noiseInARow += more.bytes
    this.#listener.onNoise(more)
    if (this.#noiseInARow > MAX_NOISE) this.end('the peer does not speak LLRP; check address and port (5084)')
  }

  #onAnswer(sent: Message, id: number): void {
    const pending = this.#pending.get(id)
    if (!pending || (sent.name !== pending.answer && sent.name !== 'ERROR_MESSAGE')) return
    this.#pending.delete(id)
    const status = first(sent, 'LLRPStatus')
    if (sent.name !== 'ERROR_MESSAGE' && status?.fields.StatusCode === 0)
      pending.settle({ kind: 'answered', message: sent })
    else pending.settle({ kind: 'refused', detail: statusText(status) })
  }

  #onFrame(frame: LlrpFrame): void {
    const sent = decodeMessage(frame)
    if (sent.name === 'malformed') {
      const detail = `a message that makes no sense: ${sent.fault}`
      this.#noise({ bytes: frame.body.length, detail, sample: frame.body })
      this.#pending
        .get(frame.id)
        ?.settle({ kind: 'lost', possiblySent: true, detail: `the answer makes no sense: ${sent.fault}` })
      this.#pending.delete(frame.id)
    } else if (sent.name === 'READER_EVENT_NOTIFICATION') this.#listener.onNotification(sent)
    else if (sent.name === 'unknown')
      this.#listener.onNoise({ bytes: frame.body.length, detail: `a message of the unknown type ${frame.type}` })
    else this.#onAnswer(sent, frame.id)
  }

  #onReport(frame: LlrpFrame, seen: TagSighting[]): void {
    const tags = readTagReports(frame.body)
    if (!tags)
      return this.#noise({ bytes: frame.body.length, detail: 'a tag report that makes no sense', sample: frame.body })
    if (tags.length === 0 && isTagReport(frame.body))
      this.#noise({ bytes: frame.body.length, detail: 'a tag report without an EPC', sample: frame.body })
    for (const tag of tags) seen.push(tag)
    if (!this.#listener.onReport) return
    const sent = decodeMessage(frame)
    if (sent.name === 'RO_ACCESS_REPORT') this.#listener.onReport(sent)
  }

  #onFrames(frames: readonly LlrpFrame[]): void {
    // Readers send one message for each tag. The listener receives all tags of a chunk together.
    let seen: TagSighting[] = []
    // One answer for all keepalives of a chunk: a reader sends one at a time.
    let keepalive: LlrpFrame | undefined
    const flush = () => {
      if (seen.length > 0) this.#listener.onTags(seen)
      seen = []
    }
    for (const frame of frames) {
      if (frame.type === REPORT) this.#onReport(frame, seen)
      else if (frame.type === KEEPALIVE) keepalive = frame
      else {
        flush()
        this.#onFrame(frame)
      }
    }
    flush()
    if (keepalive) {
      const { id } = keepalive
      this.send(() => message('KEEPALIVE_ACK', id, {}))
    }
    if (frames.length > 0) {
      this.#lastReceivedAt = this.#platform.clock.elapsed()
      this.#noiseInARow = 0
    }
    const thrownAway = this.#codec.takeNoise()
    if (thrownAway) this.#noise(thrownAway)
  }

  async #listen(): Promise<void> {
    try {
      for await (const chunk of this.#link.bytes) {
        this.#stopSilence()
        this.#onFrames(this.#codec.push(chunk))
        if (this.#over.signal.aborted) return
        if (this.#codec.held > 0 && this.#noiseInARow > 0)
          this.#stopSilence = this.#timers.after(FREE_AFTER_MS, () => this.#onFrames(this.#codec.silence()))
      }
      this.end('the reader closed the connection')
    } catch (error) {
      this.end(error instanceof Error ? error.message : String(error))
    }
  }
}

/** Names of status codes (LLRP 1.0.1, 14.2). */
const STATUS_NAMES: Readonly<Record<number, string>> = {
  100: 'parameter error',
  101: 'field error',
  102: 'unexpected parameter',
  103: 'missing parameter',
  104: 'parameter twice',
  105: 'too many parameters',
  106: 'too many fields',
  107: 'unknown parameter',
  108: 'unknown field',
  109: 'unsupported message',
  110: 'unsupported version',
  111: 'unsupported parameter',
  200: 'parameter error',
  201: 'field error',
  202: 'unexpected parameter',
  203: 'missing parameter',
  204: 'parameter twice',
  205: 'too many parameters',
  206: 'too many fields',
  207: 'unknown parameter',
  208: 'unknown field',
  209: 'unsupported parameter',
  300: 'invalid attribute',
  301: 'attribute out of range',
  401: 'device error',
}

/** Describes a status for a person: the standard's name, the reader's description, then the parameter or field. */
function statusText(status: Parameter<'LLRPStatus'> | undefined): string {
  if (!status) return 'the answer has no status'
  const { StatusCode: code, ErrorDescription: description } = status.fields
  const parameter = first(status, 'ParameterError')
  const field = first(status, 'FieldError') ?? first(parameter, 'FieldError')
  const where = [
    parameter && `parameter ${parameter.fields.ParameterType}`,
    field && `field ${field.fields.FieldNum}`,
  ].filter((part) => part !== undefined)
  return [`${STATUS_NAMES[code] ?? 'refused'} (${code})`, ...(description ? [description] : []), ...where].join(', ')
}
