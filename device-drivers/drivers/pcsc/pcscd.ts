import type { Platform, Timers } from '../../../policy/platform.ts'
import { answerBuffer } from '../../protocols/pcsc/answer-buffer.ts'
import {
  bodyBytes,
  CHANGE_FIELDS,
  decodeBody,
  encodeRequest,
  MAX_APDU_BYTES,
  PCSC_BODIES,
} from '../../protocols/pcsc/messages.ts'
import type { PcscBody, PcscCommand } from '../../protocols/pcsc/messages.ts'
import { decodeReaderStates, READER_STATES_BYTES, sameStates } from '../../protocols/pcsc/reader-states.ts'
import type { ReaderState } from '../../protocols/pcsc/reader-states.ts'
import { returnText, SERVICE_STOPPED, SUCCESS } from '../../protocols/pcsc/return-codes.ts'
import type { ByteLink } from '../../transports/byte-link.ts'
import { PCSCD } from '../../transports/link-settings.ts'
import type { ProtocolClient } from '../../transports/shared-links.ts'

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
const CHECK_EVERY_MS = 10_000

const WITHIN_MS: Partial<Record<PcscCommand, number>> = {
  connect: CARD_WITHIN_MS,
  reconnect: CARD_WITHIN_MS,
  transmit: CARD_WITHIN_MS,
  disconnect: CARD_WITHIN_MS,
}
const CHANGE_BYTES = bodyBytes(CHANGE_FIELDS)
const MAX_HELD_BYTES = 2 * (READER_STATES_BYTES + CHANGE_BYTES) + MAX_APDU_BYTES

const never = new AbortController().signal

interface PendingRead {
  readonly length: number
  readonly resolve: (bytes: Uint8Array) => void
  readonly reject: (error: Error) => void
}

/** Begins to listen; nothing is said before `greet`. `service` names the other side in faults. */
export function startPcscd(link: ByteLink, platform: Platform, service = PCSCD): Pcscd {
  return new Pcscd(link, platform, service)
}

/**
 * One conversation with pcscd, one question at a time. A question that is not answered in time, or not as it must
 * be, ends it: without headers on answers nobody could tell later bytes apart. Then every call rejects with `ConversationOver`.
 */
export class Pcscd implements ProtocolClient {
  readonly #link: ByteLink
  readonly #service: string
  readonly #timers: Timers
  readonly #buffer = answerBuffer(MAX_HELD_BYTES)
  #pendingRead: PendingRead | null = null
  #endError: ConversationOver | null = null
  #context = 0
  #resolveEnded = (_reason: string) => {}
  readonly ended = new Promise<string>((resolve) => {
    this.#resolveEnded = resolve
  })

  constructor(link: ByteLink, platform: Platform, service: string) {
    this.#link = link
    this.#service = service
    this.#timers = platform.timers
    void this.#listen()
  }

  /** Agrees on the version and opens a context. Call it once, first. */
  async negotiate(): Promise<void> {
    let { body } = await this.#exchange('version', { major: MAJOR, minor: FIRST_OFFER })
    if (body.rv === SERVICE_STOPPED && body.major === MAJOR && body.minor === SECOND_OFFER) {
      body = (await this.#exchange('version', { major: MAJOR, minor: SECOND_OFFER })).body
    }
    if (body.rv !== SUCCESS) {
      this.#end(
        `pcscd speaks protocol ${body.major}:${body.minor}; this agent speaks 4:4 and 4:5 (pcscd 1.8.24 and later)`,
      )
      throw this.#endError ?? new ConversationOver('over')
    }
    this.#context = (await this.request('establishContext', { scope: SCOPE_SYSTEM })).body.context ?? 0
  }

  /** Rejects with `PcscRefusal` when pcscd answers anything but success. `data`: only of transmit. */
  async request(
    command: PcscCommand,
    body: PcscBody,
    data?: Uint8Array,
  ): Promise<{ body: PcscBody; data: Uint8Array }> {
    const answer = await this.#exchange(command, body, data)
    if (answer.body.rv !== SUCCESS) throw new PcscRefusal(answer.body.rv ?? 0)
    return answer
  }

  /** The readers and their cards now. */
  async readers(): Promise<readonly ReaderState[]> {
    this.#sendRequest('getReadersState')
    return decodeReaderStates(await this.#readWithin(READER_STATES_BYTES, TABLE_WITHIN_MS, 'getReadersState'))
  }

  /**
   * Resolves when they are perhaps not as `known` any more, when `wake` aborts, and from time to time.
   *
   * Asking to wait is answered with the table of readers, and later with one word: of a change, or because waiting was
   * stopped, never both. pcscd 2.5 may put that word before or into the table. So the bytes are counted, the table is only
   * compared, and what it shows is fetched anew when nobody waits.
   */
  async untilChange(known: readonly ReaderState[], wake: AbortSignal): Promise<void> {
    this.#sendRequest('waitReaderStateChange')
    const table = decodeReaderStates(
      await this.#readWithin(READER_STATES_BYTES, TABLE_WITHIN_MS, 'waitReaderStateChange'),
    )
    let isChanged = false
    const change = this.#read(CHANGE_BYTES).then(() => void (isChanged = true))
    change.catch(() => {})
    if (sameStates(table, known)) await firstOf(this.#timers, change, wake, CHECK_EVERY_MS)
    if (isChanged) return
    this.#write('stopWaitingReaderStateChange')
    await within(this.#timers, change, ANSWER_WITHIN_MS, () =>
      this.#end(`${this.#service} does not answer stopWaitingReaderStateChange`),
    )
  }

  /** The context of `greet`. */
  get context(): number {
    return this.#context
  }

  #end(reason: string): void {
    if (this.#endError) return
    this.#endError = new ConversationOver(reason)
    this.#pendingRead?.reject(this.#endError)
    this.#pendingRead = null
    this.#resolveEnded(reason)
  }

  #resolveRead(): void {
    const bytes = this.#pendingRead ? this.#buffer.take(this.#pendingRead.length) : null
    if (!bytes || !this.#pendingRead) return
    const { resolve } = this.#pendingRead
    this.#pendingRead = null
    resolve(bytes)
  }

  async #listen(): Promise<void> {
    try {
      for await (const chunk of this.#link.bytes) {
        if (!this.#buffer.push(chunk))
          return this.#end(`${this.#service} says more than any answer has; is another program on this socket?`)
        this.#resolveRead()
      }
      this.#onLinkEnd(`${this.#service} hung up`)
    } catch (error) {
      this.#onLinkEnd(error instanceof Error ? error.message : String(error))
    }
  }

  /** A client that pcscd does not let in is not told so: the connection just ends. */
  #onLinkEnd(reason: string): void {
    const isRejected = this.#context === 0 && this.#service === PCSCD
    this.#end(
      isRejected ? 'pcscd hung up at once; it may not let this user in (polkit), or has too many clients' : reason,
    )
  }

  #read(length: number): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      if (this.#endError) return reject(this.#endError)
      this.#pendingRead = { length, resolve, reject }
      this.#resolveRead()
    })
  }

  async #readWithin(length: number, ms: number, what: string): Promise<Uint8Array> {
    return within(this.#timers, this.#read(length), ms, () =>
      this.#end(`${this.#service} does not answer ${what} within ${ms / 1_000} s`),
    )
  }

  // Not waited for: a pcscd that reads nothing is found by the limit on its answer.
  #write(command: PcscCommand, body?: PcscBody, data?: Uint8Array): void {
    this.#link.write(encodeRequest(command, body, data), never).catch((error: Error) => this.#onLinkEnd(error.message))
  }

  /** Says something that is to be answered, when nothing else is. */
  #sendRequest(command: PcscCommand, body?: PcscBody, data?: Uint8Array): void {
    if (this.#buffer.held > 0) this.#end(`${this.#service} says what nobody asked`)
    if (this.#endError) throw this.#endError
    this.#write(command, body, data)
  }

  async #exchange(
    command: PcscCommand,
    body: PcscBody,
    data?: Uint8Array,
  ): Promise<{ body: PcscBody; data: Uint8Array }> {
    this.#sendRequest(command, body, data)
    const ms = WITHIN_MS[command] ?? ANSWER_WITHIN_MS
    const answer = decodeBody(
      PCSC_BODIES[command],
      await this.#readWithin(bodyBytes(PCSC_BODIES[command]), ms, command),
    )
    if (command !== 'transmit' || answer.rv !== SUCCESS) return { body: answer, data: new Uint8Array(0) }
    const length = answer.receiveLength ?? 0
    if (length > MAX_APDU_BYTES) this.#end(`${this.#service} announces an answer of ${length} bytes`)
    return { body: answer, data: await this.#readWithin(length, ms, command) }
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
  let finish = () => {}
  const other = new Promise<void>((resolve) => {
    finish = resolve
  })
  const cancel = timers.after(ms, finish)
  wake.addEventListener('abort', finish, { once: true })
  if (wake.aborted) finish()
  try {
    await Promise.race([promise, other])
  } finally {
    cancel()
    wake.removeEventListener('abort', finish)
  }
}
