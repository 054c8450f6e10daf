import { setMaxListeners } from 'node:events'
import { deadline } from '../../../policy/platform.ts'
import type { Cancel, Platform } from '../../../policy/platform.ts'
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
import type { Speaker } from '../../transports/shared-links.ts'

/** What became of a request. */
export type LlrpAnswer<N extends MessageName = MessageName> =
  | { readonly kind: 'answered'; readonly message: Message<N> }
  /** The reader says no, and why. */
  | { readonly kind: 'refused'; readonly detail: string }
  /** No answer, or none that can be understood. `handed`: the reader may have received the request. */
  | { readonly kind: 'lost'; readonly handed: boolean; readonly detail: string }

/** One connection to a reader. */
export interface LlrpConversation extends Speaker {
  /** Asks; `make` gets the number that ties the answer to it. Never rejects. */
  request<A extends MessageName>(
    answer: A,
    make: (id: number) => Message,
    options: RequestOptions,
  ): Promise<LlrpAnswer<A>>
  /** Says something that has no answer. */
  tell(make: (id: number) => Message): void
  /** From now on, so long without a sign of life ends the connection, ms. */
  expectLifeWithin(ms: number): void
  /** Ends the connection. */
  end(reason: string): void
  readonly isOver: boolean
}

export interface RequestOptions {
  readonly timeoutMs: number
  /** Gives the request up. */
  readonly signal?: AbortSignal
  /** Called right before the first byte is handed to the link. */
  readonly onHanded?: () => void
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
const MOST_PENDING = 64
/** Bytes in a row without a message after which this is no LLRP reader. */
const MOST_NOISE = 65_536
/** While the codec has lost its place, what a false beginning holds up is given free after so long, ms. */
const FREE_AFTER_MS = 1_000

interface Pending {
  readonly answer: string
  settle(answer: LlrpAnswer): void
}

/** Speaks with the reader at the other end of `link` until it ends. */
export function startConversation(link: ByteLink, platform: Platform, listener: LlrpListener): LlrpConversation {
  const { clock, timers } = platform
  const codec = llrpCodec()
  const pending = new Map<number, Pending>()
  const over = new AbortController()
  // Every request that waits listens for the end; MOST_PENDING bounds them.
  setMaxListeners(0, over.signal)
  let lastId = 0
  let heardAt = clock.elapsed()
  let noiseInARow = 0
  let stopWatch: Cancel = () => {}
  let stopSilence: Cancel = () => {}
  let tellEnd = (_reason: string) => {}
  const ended = new Promise<string>((resolve) => {
    tellEnd = resolve
  })

  function end(reason: string): void {
    if (over.signal.aborted) return
    over.abort(new DOMException(reason, 'AbortError'))
    stopWatch()
    stopSilence()
    for (const { settle } of pending.values()) settle({ kind: 'lost', handed: true, detail: reason })
    pending.clear()
    tellEnd(reason)
  }

  function newId(): number {
    lastId = lastId >= 0xffffffff ? 1 : lastId + 1
    return lastId
  }

  function write(bytes: Uint8Array, signal: AbortSignal): Promise<void> {
    return link.write(bytes, signal).catch((error: unknown) => {
      if (!signal.aborted) end(error instanceof Error ? error.message : String(error))
    })
  }

  function noise(more: Noise): void {
    noiseInARow += more.bytes
    listener.onNoise(more)
    if (noiseInARow > MOST_NOISE) end('what answers there does not speak LLRP; check address and port (5084)')
  }

  function answerArrived(said: Message, id: number): void {
    const asked = pending.get(id)
    if (!asked || (said.name !== asked.answer && said.name !== 'ERROR_MESSAGE')) return
    pending.delete(id)
    const status = first(said, 'LLRPStatus')
    if (said.name !== 'ERROR_MESSAGE' && status?.fields.StatusCode === 0)
      asked.settle({ kind: 'answered', message: said })
    else asked.settle({ kind: 'refused', detail: statusText(status) })
  }

  function take(frame: LlrpFrame): void {
    const said = decodeMessage(frame)
    if (said.name === 'malformed') {
      noise({ bytes: frame.body.length, detail: `a message that makes no sense: ${said.fault}` })
      pending.get(frame.id)?.settle({ kind: 'lost', handed: true, detail: `the answer makes no sense: ${said.fault}` })
      pending.delete(frame.id)
    } else if (said.name === 'READER_EVENT_NOTIFICATION') listener.onNotification(said)
    else if (said.name !== 'unknown') answerArrived(said, frame.id)
  }

  function takeReport(frame: LlrpFrame, seen: TagSighting[]): void {
    const tags = readTagReports(frame.body)
    if (!tags) return noise({ bytes: frame.body.length, detail: 'a tag report that makes no sense' })
    for (const tag of tags) seen.push(tag)
    if (!listener.onReport) return
    const said = decodeMessage(frame)
    if (said.name === 'RO_ACCESS_REPORT') listener.onReport(said)
  }

  function takeAll(frames: readonly LlrpFrame[]): void {
    // Readers send a message for every tag: those that came together are passed on together.
    let seen: TagSighting[] = []
    const flush = () => {
      if (seen.length > 0) listener.onTags(seen)
      seen = []
    }
    for (const frame of frames) {
      if (frame.type === REPORT) takeReport(frame, seen)
      else if (frame.type === KEEPALIVE) tell(() => message('KEEPALIVE_ACK', frame.id, {}))
      else {
        flush()
        take(frame)
      }
    }
    flush()
    if (frames.length > 0) {
      heardAt = clock.elapsed()
      noiseInARow = 0
    }
    const thrownAway = codec.takeNoise()
    if (thrownAway) noise(thrownAway)
  }

  async function listen(): Promise<void> {
    try {
      for await (const chunk of link.bytes) {
        stopSilence()
        takeAll(codec.push(chunk))
        if (over.signal.aborted) return
        if (codec.held > 0 && noiseInARow > 0) stopSilence = timers.after(FREE_AFTER_MS, () => takeAll(codec.silence()))
      }
      end('the reader closed the connection')
    } catch (error) {
      end(error instanceof Error ? error.message : String(error))
    }
  }

  function tell(make: (id: number) => Message): void {
    if (!over.signal.aborted) void write(encodeMessage(make(newId())), over.signal)
  }

  async function request<A extends MessageName>(
    answer: A,
    make: (id: number) => Message,
    options: RequestOptions,
  ): Promise<LlrpAnswer<A>> {
    const notHanded = (detail: string): LlrpAnswer<A> => ({ kind: 'lost', handed: false, detail })
    if (over.signal.aborted) return notHanded((over.signal.reason as Error).message)
    if (options.signal?.aborted) return notHanded('given up')
    if (pending.size >= MOST_PENDING) return notHanded(`${MOST_PENDING} requests wait for this reader already`)
    const id = newId()
    const said = make(id)
    const bytes = encodeMessage(said)
    const limit = deadline(timers, options.timeoutMs, options.signal)
    const got = new Promise<LlrpAnswer>((resolve) => {
      pending.set(id, { answer: answerTo(said.name) ?? answer, settle: resolve })
      const giveUp = () => {
        const detail = options.signal?.aborted ? 'given up' : `no answer to ${said.name} within ${options.timeoutMs} ms`
        resolve({ kind: 'lost', handed: true, detail })
      }
      limit.signal.addEventListener('abort', giveUp, { once: true })
    })
    options.onHanded?.()
    void write(bytes, limit.signal)
    const result = await got
    limit.done()
    pending.delete(id)
    // `answerArrived` let nothing through but a message of this name.
    return result as LlrpAnswer<A>
  }

  function expectLifeWithin(ms: number): void {
    stopWatch()
    if (over.signal.aborted) return
    const look = () => {
      const quietMs = clock.elapsed() - heardAt
      if (quietMs >= ms) end(`nothing from the reader for ${Math.round(ms / 1_000)} s`)
      else stopWatch = timers.after(ms - quietMs, look)
    }
    stopWatch = timers.after(ms, look)
  }

  void listen()
  return {
    ended,
    request,
    tell,
    expectLifeWithin,
    end,
    get isOver() {
      return over.signal.aborted
    },
  }
}
