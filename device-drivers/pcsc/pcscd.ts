import { type Platform, type Timers, deadline } from '../../policy/platform.ts'
import {
  answerBuffer,
  bodyBytes,
  CHANGE_FIELDS,
  decodeBody,
  encodeRequest,
  MAX_APDU_BYTES,
  PCSC_BODIES,
  type PcscBody,
  type PcscCommand,
  returnText,
  SERVICE_STOPPED,
  SUCCESS,
  decodeReaderStates,
  READER_STATES_BYTES,
  sameStates,
  type ReaderState,
} from './protocol/messages.ts'
import type { ByteLink, LinkFactory } from '../transports/byte-link.ts'
import { PCSCD } from '../transports/link-settings.ts'
import type { ProtocolClient } from '../transports/shared-links.ts'

/** pcscd refused a request; the connection continues. */
export class PcscRefusal extends Error {
  override name = 'PcscRefusal'
  /** The code that pcscd returned; messages.ts lists the codes. */
  readonly rv: number

  constructor(rv: number) {
    super(returnText(rv))
    this.rv = rv
  }
}

/** The connection has ended. The message says why. */
export class ConversationOver extends Error {
  override name = 'ConversationOver'
}

/**
 * Minor protocol version that the agent offers first. pcscd 1.8.24 to 2.2 accept only this version; 2.4.1 and later
 * also accept this version.
 */
const FIRST_OFFER = 4
/** Minor protocol version that the agent offers second. pcscd 2.3 and 2.4.0 accept only this version. */
const SECOND_OFFER = 5
const MAJOR = 4
const SCOPE_SYSTEM = 2

/** Time limit of requests for the reader table, ms. pcscd answers only after it has set up new readers. */
const TABLE_WITHIN_MS = 10_000
/** Time limit of requests to a card, ms; the limits of pcscd and readers are shorter. */
const CARD_WITHIN_MS = 6_000
const ANSWER_WITHIN_MS = 2_000
/** Interval of the requests while nothing changes, ms. The requests show that pcscd still answers. */
const CHECK_EVERY_MS = 10_000

const WITHIN_MS: Partial<Record<PcscCommand, number>> = {
  connect: CARD_WITHIN_MS,
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

/** Starts to listen; call `negotiate` next. `service` names the peer in error texts. */
export function startPcscd(link: ByteLink, platform: Platform, service = PCSCD): Pcscd {
  return new Pcscd(link, platform, service)
}

/**
 * A client of pcscd (pcsc-lite `src/winscard_msg.h`, protocol 4:4 and 4:5), one request at a time. Answers have no
 * headers, so a missing or invalid answer ends the connection. After that, every call rejects with `ConversationOver`.
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

  /** Agrees on the protocol version and opens a context. Call this function once, before all others. */
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

  /**
   * Sends a request. Rejects with `PcscRefusal` if pcscd does not return success. Only `transmit` sends or returns
   * `data`.
   */
  async request(
    command: PcscCommand,
    body: PcscBody,
    data?: Uint8Array,
  ): Promise<{ body: PcscBody; data: Uint8Array }> {
    const answer = await this.#exchange(command, body, data)
    if (answer.body.rv !== SUCCESS) throw new PcscRefusal(answer.body.rv ?? 0)
    return answer
  }

  /** Reads the table of readers and their cards. */
  async readers(): Promise<readonly ReaderState[]> {
    this.#sendRequest('getReadersState')
    return decodeReaderStates(await this.#readWithin(READER_STATES_BYTES, TABLE_WITHIN_MS, 'getReadersState'))
  }

  /**
   * Resolves when the readers may differ from `known`, when `wake` aborts, or after 10 s.
   *
   * pcscd answers `waitReaderStateChange` with the table of readers. Later pcscd sends one message: at a change, or
   * after `stopWaitingReaderStateChange`. pcscd 2.5 may send this message before or within the table. This table may
   * therefore be wrong, so the caller must read the table again.
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

  /** The context that `negotiate` opened. */
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
          return this.#end(`${this.#service} sent more than any answer has; is another program on this socket?`)
        this.#resolveRead()
      }
      this.#onLinkEnd(`${this.#service} closed the connection`)
    } catch (error) {
      this.#onLinkEnd(error instanceof Error ? error.message : String(error))
    }
  }

  /** If pcscd does not admit a client, pcscd closes the connection without an error. */
  #onLinkEnd(reason: string): void {
    const isRejected = this.#context === 0 && this.#service === PCSCD
    this.#end(
      isRejected
        ? 'pcscd closed the connection at once; it does not admit this user (polkit), or has too many clients'
        : reason,
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

  // Does not wait for the write. If pcscd reads nothing, the time limit of the answer expires.
  #write(command: PcscCommand, body?: PcscBody, data?: Uint8Array): void {
    this.#link.write(encodeRequest(command, body, data), never).catch((error: Error) => this.#onLinkEnd(error.message))
  }

  /** Sends a request; no other request may be pending. */
  #sendRequest(command: PcscCommand, body?: PcscBody, data?: Uint8Array): void {
    if (this.#buffer.held > 0) this.#end(`${this.#service} sent an answer without a request`)
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

/** Awaits the promise. If the promise takes longer than `ms`, calls `tooLate`. */
async function within<T>(timers: Timers, promise: Promise<T>, ms: number, tooLate: () => void): Promise<T> {
  const cancel = timers.after(ms, tooLate)
  try {
    return await promise
  } finally {
    cancel()
  }
}

/** Resolves when `promise` resolves, `wake` aborts or `ms` have passed. Rejects only if `promise` rejects. */
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

/**
 * Finds the reader with this name, or the only reader whose name contains this name. If there is no such
 * reader, returns the reason. pcscd's names end with the numbers of the reader and of the slot (`… 00 00`). The
 * reader's number depends on the order in which readers were plugged in, so omit this number in the settings.
 */
export function findReader(
  states: readonly ReaderState[],
  wanted: string,
  service = PCSCD,
): { readonly name: string } | { readonly missing: string } {
  const names = states.map((state) => state.name)
  if (names.includes(wanted)) return { name: wanted }
  const fitting = names.filter((name) => name.toLowerCase().includes(wanted.toLowerCase()))
  const [name] = fitting
  if (name !== undefined && fitting.length === 1) return { name }
  const list = (of: readonly string[]) => of.map((each) => `"${each}"`).join(', ')
  if (fitting.length > 1)
    return { missing: `"${wanted}" fits several readers: ${list(fitting)}; give more of the name in link.pcsc` }
  return {
    missing:
      names.length === 0
        ? `${service} has no reader; is one plugged in?`
        : `${service} has no reader "${wanted}"; it has ${list(names)}`,
  }
}

/** A reader of PC/SC. `stableName` does not depend on the USB socket, and fits only this reader. */
export interface ListedReader {
  readonly name: string
  readonly stableName: string
  readonly cardPresent: boolean
}

const OPEN_WITHIN_MS = 5_000

/** Lists the present readers of PC/SC, over a link that `open` opens. Rejects with an error that names the fix. */
export async function listReaders(open: LinkFactory, platform: Platform): Promise<ListedReader[]> {
  const limit = deadline(platform.timers, OPEN_WITHIN_MS)
  const link = await open(limit.signal).finally(limit.done)
  try {
    const pcscd = startPcscd(link, platform)
    await pcscd.negotiate()
    const states = await pcscd.readers()
    return states.map(({ name, cardPresent }) => {
      // Removes the final numbers. pcscd appends two numbers (`… 00 00`): of the reader, by the order of plugging in,
      // and of the slot. Windows and macOS append only the number of the reader: `… 0`.
      const part = name.replace(/ [0-9A-F]{2}(?: [0-9A-F]{2})?$| \d$/, '')
      return { name, stableName: part !== '' && 'name' in findReader(states, part) ? part : name, cardPresent }
    })
  } finally {
    await link.close()
  }
}
