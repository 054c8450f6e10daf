import type { Platform, Timers } from '../../../policy/platform.ts'
import { answerBuffer } from '../../protocols/pcsc/answer-buffer.ts'
import {
  bodyBytes,
  CHANGE_FIELDS,
  decodeBody,
  encodeRequest,
  MOST_APDU_BYTES,
  PCSC_BODIES,
} from '../../protocols/pcsc/messages.ts'
import type { PcscBody, PcscCommand } from '../../protocols/pcsc/messages.ts'
import { decodeReaderStates, READER_STATES_BYTES, sameStates } from '../../protocols/pcsc/reader-states.ts'
import type { ReaderState } from '../../protocols/pcsc/reader-states.ts'
import { returnText, SERVICE_STOPPED, SUCCESS } from '../../protocols/pcsc/return-codes.ts'
import type { ByteLink } from '../../transports/byte-link.ts'
import { PCSCD } from '../../transports/link-settings.ts'
import type { Speaker } from '../../transports/shared-links.ts'

/** pcscd did not do it; the conversation goes on. */
export class PcscRefusal extends Error {
  override name = 'PcscRefusal'
  /** A value of return-codes.ts. */
  readonly rv: number

  constructor(rv: number) {
    super(returnText(rv))
    this.rv = rv
  }
}

/** The conversation is over, with the reason. */
export class ConversationOver extends Error {
  override name = 'ConversationOver'
}

/**
 * One conversation with pcscd, one question at a time. A question that is not answered in time, or not as it must
 * be, ends it: without headers on answers nobody could tell later bytes apart. Then every call rejects with `ConversationOver`.
 */
export interface Pcscd extends Speaker {
  /** Agrees on the version and opens a context. Call it once, first. */
  greet(): Promise<void>
  /** Rejects with `PcscRefusal` when pcscd answers anything but success. `data`: only of transmit. */
  ask(
    command: PcscCommand,
    body: PcscBody,
    data?: Uint8Array,
  ): Promise<{ readonly body: PcscBody; readonly data: Uint8Array }>
  /** The readers and their cards now. */
  readers(): Promise<readonly ReaderState[]>
  /** Resolves when they are perhaps not as `known` any more, when `wake` aborts, and from time to time. */
  untilChange(known: readonly ReaderState[], wake: AbortSignal): Promise<void>
  /** The context of `greet`. */
  readonly context: number
}

/** Spoken by pcscd 1.8.24 to 2.2 alone, and still by 2.4.1 and later. */
const FIRST_OFFER = 4
/** pcscd 2.3 and 2.4.0 take nothing else. Newer ones take the first offer. */
const SECOND_OFFER = 5
const MAJOR = 4
const SCOPE_SYSTEM = 2

/** pcscd answers these only after new readers have been set up. */
const TABLE_WITHIN_MS = 10_000
/** To power a card up, or to hear from it: pcscd and the reader have limits of their own, all shorter. */
const CARD_WITHIN_MS = 6_000
const ANSWER_WITHIN_MS = 2_000
/** After this long without news pcscd is asked, to see that it still answers. */
const ASK_EVERY_MS = 10_000

const WITHIN_MS: Partial<Record<PcscCommand, number>> = {
  connect: CARD_WITHIN_MS,
  reconnect: CARD_WITHIN_MS,
  transmit: CARD_WITHIN_MS,
  disconnect: CARD_WITHIN_MS,
}
const CHANGE_BYTES = bodyBytes(CHANGE_FIELDS)
const MOST_HELD_BYTES = 2 * (READER_STATES_BYTES + CHANGE_BYTES) + MOST_APDU_BYTES

const never = new AbortController().signal

interface Wanted {
  readonly length: number
  readonly resolve: (bytes: Uint8Array) => void
  readonly reject: (error: Error) => void
}

/** Begins to listen; nothing is said before `greet`. `service` names the other side in faults. */
export function startPcscd(link: ByteLink, { timers }: Platform, service = PCSCD): Pcscd {
  const buffer = answerBuffer(MOST_HELD_BYTES)
  let wanted: Wanted | null = null
  let over: ConversationOver | null = null
  let context = 0
  let tell = (_reason: string) => {}
  const ended = new Promise<string>((resolve) => {
    tell = resolve
  })

  function end(reason: string): void {
    if (over) return
    over = new ConversationOver(reason)
    wanted?.reject(over)
    wanted = null
    tell(reason)
  }

  function serve(): void {
    const bytes = wanted ? buffer.take(wanted.length) : null
    if (!bytes || !wanted) return
    const { resolve } = wanted
    wanted = null
    resolve(bytes)
  }

  async function listen(): Promise<void> {
    try {
      for await (const chunk of link.bytes) {
        if (!buffer.push(chunk))
          return end(`${service} says more than any answer has; is another program on this socket?`)
        serve()
      }
      broke(`${service} hung up`)
    } catch (error) {
      broke(error instanceof Error ? error.message : String(error))
    }
  }

  /** A client that pcscd does not let in is not told so: the connection just ends. */
  function broke(reason: string): void {
    const isRejected = context === 0 && service === PCSCD
    end(isRejected ? 'pcscd hung up at once; it may not let this user in (polkit), or has too many clients' : reason)
  }

  function read(length: number): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      if (over) return reject(over)
      wanted = { length, resolve, reject }
      serve()
    })
  }

  async function readWithin(length: number, ms: number, what: string): Promise<Uint8Array> {
    return within(timers, read(length), ms, () => end(`${service} does not answer ${what} within ${ms / 1_000} s`))
  }

  // Not waited for: a pcscd that reads nothing is found by the limit on its answer.
  function write(command: PcscCommand, body?: PcscBody, data?: Uint8Array): void {
    link.write(encodeRequest(command, body, data), never).catch((error: Error) => broke(error.message))
  }

  /** Says something that is to be answered, when nothing else is. */
  function say(command: PcscCommand, body?: PcscBody, data?: Uint8Array): void {
    if (buffer.held > 0) end(`${service} says what nobody asked`)
    if (over) throw over
    write(command, body, data)
  }

  async function exchange(
    command: PcscCommand,
    body: PcscBody,
    data?: Uint8Array,
  ): Promise<{ body: PcscBody; data: Uint8Array }> {
    say(command, body, data)
    const ms = WITHIN_MS[command] ?? ANSWER_WITHIN_MS
    const answer = decodeBody(PCSC_BODIES[command], await readWithin(bodyBytes(PCSC_BODIES[command]), ms, command))
    if (command !== 'transmit' || answer.rv !== SUCCESS) return { body: answer, data: new Uint8Array(0) }
    const length = answer.receiveLength ?? 0
    if (length > MOST_APDU_BYTES) end(`${service} announces an answer of ${length} bytes`)
    return { body: answer, data: await readWithin(length, ms, command) }
  }

  async function ask(
    command: PcscCommand,
    body: PcscBody,
    data?: Uint8Array,
  ): Promise<{ body: PcscBody; data: Uint8Array }> {
    const answer = await exchange(command, body, data)
    if (answer.body.rv !== SUCCESS) throw new PcscRefusal(answer.body.rv ?? 0)
    return answer
  }

  async function greet(): Promise<void> {
    let { body } = await exchange('version', { major: MAJOR, minor: FIRST_OFFER })
    if (body.rv === SERVICE_STOPPED && body.major === MAJOR && body.minor === SECOND_OFFER) {
      body = (await exchange('version', { major: MAJOR, minor: SECOND_OFFER })).body
    }
    if (body.rv !== SUCCESS) {
      end(`pcscd speaks protocol ${body.major}:${body.minor}; this agent speaks 4:4 and 4:5 (pcscd 1.8.24 and later)`)
      throw over ?? new ConversationOver('over')
    }
    context = (await ask('establishContext', { scope: SCOPE_SYSTEM })).body.context ?? 0
  }

  async function readers(): Promise<readonly ReaderState[]> {
    say('getReadersState')
    return decodeReaderStates(await readWithin(READER_STATES_BYTES, TABLE_WITHIN_MS, 'getReadersState'))
  }

  /**
   * Asking to wait is answered with the table of readers, and later with one word: of a change, or because waiting was
   * stopped, never both. pcscd 2.5 may put that word before or into the table. So the bytes are counted, the table is only
   * compared, and what it shows is fetched anew when nobody waits.
   */
  async function untilChange(known: readonly ReaderState[], wake: AbortSignal): Promise<void> {
    say('waitReaderStateChange')
    const table = decodeReaderStates(await readWithin(READER_STATES_BYTES, TABLE_WITHIN_MS, 'waitReaderStateChange'))
    let told = false
    const change = read(CHANGE_BYTES).then(() => void (told = true))
    change.catch(() => {})
    if (sameStates(table, known)) await firstOf(timers, change, wake, ASK_EVERY_MS)
    if (told) return
    write('stopWaitingReaderStateChange')
    await within(timers, change, ANSWER_WITHIN_MS, () => end(`${service} does not answer stopWaitingReaderStateChange`))
  }

  void listen()
  return {
    ended,
    greet,
    ask,
    readers,
    untilChange,
    get context() {
      return context
    },
  }
}

/** The promise, with `tooLate` called when it takes longer. */
async function within<T>(timers: Timers, promise: Promise<T>, ms: number, tooLate: () => void): Promise<T> {
  const cancel = timers.after(ms, tooLate)
  try {
    return await promise
  } finally {
    cancel()
  }
}

/** Resolves with the first of the three; rejects only with the promise. */
async function firstOf(timers: Timers, promise: Promise<void>, wake: AbortSignal, ms: number): Promise<void> {
  let go = () => {}
  const other = new Promise<void>((resolve) => {
    go = resolve
  })
  const cancel = timers.after(ms, go)
  wake.addEventListener('abort', go, { once: true })
  if (wake.aborted) go()
  try {
    await Promise.race([promise, other])
  } finally {
    cancel()
    wake.removeEventListener('abort', go)
  }
}
