import type { Platform } from '../../policy/platform.ts'
import {
  CHANGE_FIELDS,
  decodeRequest,
  encodeBody,
  PCSC_BODIES,
  type PcscBody,
  type PcscCommand,
  type PcscRequest,
  encodeReaderStates,
} from '../../device-drivers/pcsc/protocol/messages.ts'
import * as rv from '../../device-drivers/pcsc/protocol/messages.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import type { NfcTag } from './nfc-tags.ts'

export interface PcscdOptions {
  readonly platform: Platform
  /** Minor version of protocol 4 that the simulated pcscd uses; default 4. */
  readonly minor?: number
  /** Lowest minor version that the simulated pcscd accepts; default `minor`. */
  readonly oldest?: number
  /**
   * Offset in the table of readers, bytes. If readers change when a client begins to wait, the change message is
   * inserted at this offset, as pcscd 2.5 may do.
   */
  readonly changeAt?: number
}

interface PcscdFaults {
  /** Commands without an answer. */
  mute: ReadonlySet<PcscCommand>
  /** Answers the next `times` commands of this kind with this code. */
  refuse: { command: PcscCommand; code: number; times: number } | null
  /** Closes new connections, as pcscd does if polkit denies access. */
  closed: boolean
  /**
   * Called once, when a client requests to wait. With `changeAt`, called while pcscd sends the table, at this offset;
   * otherwise after the table.
   */
  race: (() => void) | null
  /**
   * Called after a client has read the table, before it requests to wait. If this function changes a reader, the client
   * receives no message about the change.
   */
  unseen: (() => void) | null
  /** True while cards start and have no ATR yet. */
  powering: boolean
}

export interface Reader {
  eventCounter: number
  tag: NfcTag | null
}

interface Client {
  waiting: boolean
  transaction: boolean
  send(bytes: Uint8Array): Promise<void>
}

const MAX_CLIENTS = 200
const MAX_LOGGED = 10_000
const T1 = 2
const RESET = 1
const NEVER_ABORTED = new AbortController().signal

/** A simulated pcscd with its readers and faults. */
export class PcscdSimulator {
  readonly #options: PcscdOptions
  readonly #minor: number
  readonly #oldest: number
  readonly #readers = new Map<string, Reader>()
  readonly #clients = new Set<Client>()
  readonly #handles = new Map<number, { name: string; counter: number }>()
  /** Commands received, oldest first; the last 10,000. */
  readonly log: PcscCommand[] = []
  readonly faults: PcscdFaults = {
    mute: new Set(),
    refuse: null,
    closed: false,
    race: null,
    unseen: null,
    powering: false,
  }
  #lastHandle = 0x6c00_0000
  readonly #answers: Partial<Record<PcscCommand, (request: PcscRequest, client: Client) => PcscBody>> = {
    version: ({ body }) => {
      const isTaken = body.major === 4 && (body.minor ?? 0) >= this.#oldest && (body.minor ?? 0) <= this.#minor
      return { major: 4, minor: this.#minor, rv: isTaken ? rv.SUCCESS : rv.SERVICE_STOPPED }
    },
    establishContext: ({ body }) => ({ ...body, context: 0x5d63_55e0, rv: rv.SUCCESS }),
    releaseContext: ({ body }) => ({ ...body, rv: rv.SUCCESS }),
    connect: ({ body }) => this.#connect(body),
    reconnect: (request, client) => this.#onCard(request, client),
    disconnect: (request, client) => this.#onCard(request, client),
    beginTransaction: (request, client) => this.#onCard(request, client),
    endTransaction: (request, client) => this.#onCard(request, client),
  }

  constructor(options: PcscdOptions) {
    this.#options = options
    this.#minor = options.minor ?? 4
    this.#oldest = options.oldest ?? this.#minor
  }

  /** Number of connected clients. */
  get clients(): number {
    return this.#clients.size
  }

  plug(name: string): void {
    this.#readers.set(name, { eventCounter: 0, tag: null })
    this.#changed()
  }

  unplug(name: string): void {
    this.#readers.delete(name)
    this.#changed()
  }

  /** Puts a tag on a reader, and removes the previous tag. */
  put(name: string, tag: NfcTag): void {
    return this.#change(name, (reader) => {
      reader.eventCounter += reader.tag ? 2 : 1
      reader.tag = tag
    })
  }

  take(name: string): void {
    return this.#change(name, (reader) => {
      if (reader.tag) reader.eventCounter++
      reader.tag = null
    })
  }

  /** Serves one client until it disconnects. */
  readonly serve = async (link: ByteLink): Promise<void> => {
    if (this.faults.closed || this.#clients.size >= MAX_CLIENTS) {
      for await (const _ of link.bytes) break
      return link.close()
    }
    const client: Client = {
      waiting: false,
      transaction: false,
      send: (bytes) => link.write(bytes, NEVER_ABORTED).catch(() => {}),
    }
    this.#clients.add(client)
    let held: Uint8Array = new Uint8Array(0)
    try {
      for await (const chunk of link.bytes) {
        held = Uint8Array.from([...held, ...chunk])
        for (let request = decodeRequest(held); request; request = decodeRequest(held)) {
          if (request === 'bad') return
          held = held.slice(request.length)
          await this.#handle(request, client)
        }
      }
    } catch {
      // Ignores the error, because the client is gone.
    } finally {
      this.#clients.delete(client)
      await link.close()
    }
  }

  #table(): Uint8Array {
    return encodeReaderStates(
      [...this.#readers].map(([name, { eventCounter, tag }]) => ({
        name,
        eventCounter,
        cardPresent: tag !== null,
        atr: tag && !this.faults.powering ? tag.atr : new Uint8Array(0),
      })),
    )
  }

  #changeMessage(): Uint8Array {
    return encodeBody(CHANGE_FIELDS, {})
  }

  #changed(): void {
    for (const client of this.#clients) {
      if (!client.waiting) continue
      client.waiting = false
      void client.send(this.#changeMessage())
    }
  }

  /** The tag of a handle, or the error code. */
  #tagOf(card: number = 0): NfcTag | number {
    const handle = this.#handles.get(card)
    if (!handle) return rv.INVALID_HANDLE
    const reader = this.#readers.get(handle.name)
    return reader?.tag && reader.eventCounter === handle.counter ? reader.tag : rv.REMOVED
  }

  #connect(body: PcscBody): PcscBody {
    const name = body.reader ?? ''
    const reader = this.#readers.get(name)
    if (!reader) return { ...body, rv: rv.UNKNOWN_READER }
    if (!reader.tag) return { ...body, rv: rv.NO_CARD }
    this.#handles.set(++this.#lastHandle, { name, counter: reader.eventCounter })
    return { ...body, card: this.#lastHandle, protocol: T1, rv: rv.SUCCESS }
  }

  #onCard({ command, body }: PcscRequest, client: Client): PcscBody {
    const tag = this.#tagOf(body.card)
    if (tag === rv.INVALID_HANDLE) return { ...body, rv: tag }
    if (command === 'disconnect') {
      this.#handles.delete(body.card ?? 0)
      if (body.disposition === RESET && typeof tag !== 'number') tag.reset?.()
    }
    if (command === 'endTransaction' && !client.transaction) return { ...body, rv: rv.NOT_TRANSACTED }
    client.transaction = command === 'beginTransaction' || (command !== 'endTransaction' && client.transaction)
    return { ...body, rv: typeof tag === 'number' && command !== 'disconnect' ? tag : rv.SUCCESS }
  }

  async #transmit({ body, data }: PcscRequest, client: Client): Promise<void> {
    const tag = this.#tagOf(body.card)
    const answer = typeof tag === 'number' ? tag : tag.answer(data)
    if (answer === null) return
    const code = typeof answer === 'number' ? answer : rv.SUCCESS
    const bytes = typeof answer === 'number' ? new Uint8Array(0) : answer
    await client.send(
      encodeBody(PCSC_BODIES.transmit, { ...body, receiveProtocol: 1, receiveLength: bytes.length, rv: code }),
    )
    if (bytes.length > 0) await client.send(bytes)
  }

  async #wait(client: Client): Promise<void> {
    const unseen = this.faults.unseen
    this.faults.unseen = null
    unseen?.()
    client.waiting = true
    const race = this.faults.race
    this.faults.race = null
    if (!race || this.#options.changeAt === undefined) {
      await client.send(this.#table())
      race?.()
      return
    }
    // Sends the table as it was before the change, with the change message inserted.
    const before = this.#table()
    await client.send(before.subarray(0, this.#options.changeAt))
    race()
    await client.send(before.subarray(this.#options.changeAt))
  }

  async #handle(request: PcscRequest, client: Client): Promise<void> {
    const { command } = request
    this.log.push(command)
    if (this.log.length > MAX_LOGGED) this.log.shift()
    if (this.faults.mute.has(command)) return
    if (this.faults.refuse?.command === command && this.faults.refuse.times-- > 0) {
      return client.send(encodeBody(PCSC_BODIES[command], { ...request.body, rv: this.faults.refuse.code }))
    }
    if (command === 'getReadersState') return client.send(this.#table())
    if (command === 'waitReaderStateChange') return this.#wait(client)
    if (command === 'transmit') return this.#transmit(request, client)
    if (command === 'stopWaitingReaderStateChange') {
      if (!client.waiting) return
      client.waiting = false
      return client.send(this.#changeMessage())
    }
    const body = this.#answers[command]?.(request, client)
    if (body) await client.send(encodeBody(PCSC_BODIES[command], body))
  }

  #change(name: string, act: (reader: Reader) => void): void {
    const reader = this.#readers.get(name)
    if (!reader) throw new RangeError(`no reader ${name}`)
    act(reader)
    this.#changed()
  }
}
