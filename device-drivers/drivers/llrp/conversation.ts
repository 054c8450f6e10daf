import { setMaxListeners } from 'node:events'
import { deadline } from '../../../policy/platform.ts'
import type { Cancel, Platform, Timers } from '../../../policy/platform.ts'
import type { Noise } from '../../protocols/codec.ts'
import { decodeMessage, encodeMessage } from '../../protocols/llrp/binary.ts'
import { first, message } from '../../protocols/llrp/elements.ts'
import type { Message } from '../../protocols/llrp/elements.ts'
import { llrpCodec } from '../../protocols/llrp/frames.ts'
import type { LlrpFrame } from '../../protocols/llrp/frames.ts'
import { MESSAGES } from '../../protocols/llrp/messages.ts'
import type { MessageName } from '../../protocols/llrp/messages.ts'
import { readTagReports } from '../../protocols/llrp/tag-reports.ts'
import type { TagSighting } from '../../protocols/llrp/tag-reports.ts'
import { answerTo } from '../../protocols/llrp/tables.ts'
import { statusText } from '../../protocols/llrp/status.ts'
import type { ByteLink } from '../../transports/byte-link.ts'
import type { ProtocolClient } from '../../transports/shared-links.ts'

/** What became of a request. */
export type LlrpAnswer<N extends MessageName = MessageName> =
  | { readonly kind: 'answered'; readonly message: Message<N> }
  /** The reader says no, and why. */
  | { readonly kind: 'refused'; readonly detail: string }
  /** No answer, or none that can be understood. `handed`: the reader may have received the request. */
  | { readonly kind: 'lost'; readonly possiblySent: boolean; readonly detail: string }

export interface RequestOptions {
  readonly timeoutMs: number
  /** Gives the request up. */
  readonly signal?: AbortSignal
  /** Called right before the first byte is handed to the link. */
  readonly onSend?: () => void
}

/** Who listens to a connection; called in the order of the wire. */
export interface LlrpListener {
  onTags(seen: readonly TagSighting[]): void
  onNotification(notification: Message<'READER_EVENT_NOTIFICATION'>): void
  /** The same reports in full, for the results of operations on tags; left out they are not decoded. */
  onReport?: ((report: Message<'RO_ACCESS_REPORT'>) => void) | undefined
  onNoise(noise: Noise): void
}

const REPORT = MESSAGES.RO_ACCESS_REPORT.type
const KEEPALIVE = MESSAGES.KEEPALIVE.type
const MAX_PENDING = 64
/** Bytes in a row without a message after which this is no LLRP reader. */
const MAX_NOISE = 65_536
/** While the codec has lost its place, what a false beginning holds up is given free after so long, ms. */
const FREE_AFTER_MS = 1_000

interface Pending {
  readonly answer: string
  settle(answer: LlrpAnswer): void
}

/** Speaks with the reader at the other end of `link` until it ends. */
export function startConversation(link: ByteLink, platform: Platform, listener: LlrpListener): LlrpConversation {
  return new LlrpConversation(link, platform, listener)
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
    // Every request that waits listens for the end; MAX_PENDING bounds them.
    setMaxListeners(0, this.#over.signal)
    this.#lastReceivedAt = platform.clock.elapsed()
    void this.#listen()
  }

  /** Asks; `make` gets the number that ties the answer to it. Never rejects. */
  async request<A extends MessageName>(
    answer: A,
    make: (id: number) => Message,
    options: RequestOptions,
  ): Promise<LlrpAnswer<A>> {
    const unsent = (detail: string): LlrpAnswer<A> => ({ kind: 'lost', possiblySent: false, detail })
    if (this.#over.signal.aborted) return unsent((this.#over.signal.reason as Error).message)
    if (options.signal?.aborted) return unsent('given up')
    if (this.#pending.size >= MAX_PENDING) return unsent(`${MAX_PENDING} requests wait for this reader already`)
    const id = this.#newId()
    const said = make(id)
    const bytes = encodeMessage(said)
    const limit = deadline(this.#timers, options.timeoutMs, options.signal)
    const got = new Promise<LlrpAnswer>((resolve) => {
      this.#pending.set(id, { answer: answerTo(said.name) ?? answer, settle: resolve })
      const giveUp = () => {
        const detail = options.signal?.aborted ? 'given up' : `no answer to ${said.name} within ${options.timeoutMs} ms`
        resolve({ kind: 'lost', possiblySent: true, detail })
      }
      limit.signal.addEventListener('abort', giveUp, { once: true })
    })
    options.onSend?.()
    void this.#write(bytes, limit.signal)
    const result = await got
    limit.done()
    this.#pending.delete(id)
    // `answerArrived` let nothing through but a message of this name.
    return result as LlrpAnswer<A>
  }

  /** Says something that has no answer. */
  send(make: (id: number) => Message): void {
    if (!this.#over.signal.aborted) void this.#write(encodeMessage(make(this.#newId())), this.#over.signal)
  }

  /** From now on, so long without a sign of life ends the connection, ms. */
  expectMessageWithin(ms: number): void {
    this.#stopWatch()
    if (this.#over.signal.aborted) return
    const look = () => {
      const quietMs = this.#platform.clock.elapsed() - this.#lastReceivedAt
      if (quietMs >= ms) this.end(`nothing from the reader for ${Math.round(ms / 1_000)} s`)
      else this.#stopWatch = this.#timers.after(ms - quietMs, look)
    }
    this.#stopWatch = this.#timers.after(ms, look)
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
    if (this.#noiseInARow > MAX_NOISE) this.end('what answers there does not speak LLRP; check address and port (5084)')
  }

  #onAnswer(said: Message, id: number): void {
    const asked = this.#pending.get(id)
    if (!asked || (said.name !== asked.answer && said.name !== 'ERROR_MESSAGE')) return
    this.#pending.delete(id)
    const status = first(said, 'LLRPStatus')
    if (said.name !== 'ERROR_MESSAGE' && status?.fields.StatusCode === 0)
      asked.settle({ kind: 'answered', message: said })
    else asked.settle({ kind: 'refused', detail: statusText(status) })
  }

  #onFrame(frame: LlrpFrame): void {
    const said = decodeMessage(frame)
    if (said.name === 'malformed') {
      this.#noise({ bytes: frame.body.length, detail: `a message that makes no sense: ${said.fault}` })
      this.#pending
        .get(frame.id)
        ?.settle({ kind: 'lost', possiblySent: true, detail: `the answer makes no sense: ${said.fault}` })
      this.#pending.delete(frame.id)
    } else if (said.name === 'READER_EVENT_NOTIFICATION') this.#listener.onNotification(said)
    else if (said.name !== 'unknown') this.#onAnswer(said, frame.id)
  }

  #onReport(frame: LlrpFrame, seen: TagSighting[]): void {
    const tags = readTagReports(frame.body)
    if (!tags) return this.#noise({ bytes: frame.body.length, detail: 'a tag report that makes no sense' })
    for (const tag of tags) seen.push(tag)
    if (!this.#listener.onReport) return
    const said = decodeMessage(frame)
    if (said.name === 'RO_ACCESS_REPORT') this.#listener.onReport(said)
  }

  #onFrames(frames: readonly LlrpFrame[]): void {
    // Readers send a message for every tag: those that came together are passed on together.
    let seen: TagSighting[] = []
    const flush = () => {
      if (seen.length > 0) this.#listener.onTags(seen)
      seen = []
    }
    for (const frame of frames) {
      if (frame.type === REPORT) this.#onReport(frame, seen)
      else if (frame.type === KEEPALIVE) this.send(() => message('KEEPALIVE_ACK', frame.id, {}))
      else {
        flush()
        this.#onFrame(frame)
      }
    }
    flush()
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
