import {
  CHANGE_FIELDS,
  decodeRequest,
  encodeBody,
  MAX_APDU_BYTES,
  PCSC_BODIES,
  type PcscBody,
  type PcscRequest,
  encodeReaderStates,
} from '../../pcsc/protocol/messages.ts'
import * as rv from '../../pcsc/protocol/messages.ts'
import type { ByteLink } from '../byte-link.ts'
import { SmartCardError, type ConnectedCard, type SmartCards } from './smart-cards.ts'

const MAJOR = 4
const MINOR = 4
const CONTEXT = 1
const RESET = 1
/** Limit of connected cards; the driver uses one at a time. */
const MAX_CARDS = 4

const never = new AbortController().signal

/**
 * Serves the readers by pcscd's protocol 4:4, so that one driver works on all systems. Resolves when the
 * package ends, or when the driver closes the link or sends an invalid request.
 */
export function serveSmartCards(cards: SmartCards, link: ByteLink): Promise<void> {
  return new SmartCardServer(cards, link).run()
}

/** Serves one driver. */
class SmartCardServer {
  readonly #cards: SmartCards
  readonly #link: ByteLink
  readonly #connected = new Map<number, ConnectedCard>()
  #lastHandle = 0
  #waiting = false

  constructor(cards: SmartCards, link: ByteLink) {
    this.#cards = cards
    this.#link = link
  }

  /** Serves until the link ends. Never rejects. */
  async run(): Promise<void> {
    this.#cards.onChange(() => void this.#sendChange().catch(() => {}))
    void this.#cards.ended.then(() => this.#link.close())
    let unread: Uint8Array = new Uint8Array(0)
    try {
      for await (const chunk of this.#link.bytes) {
        unread = Uint8Array.from([...unread, ...chunk])
        for (let request = decodeRequest(unread); request; request = decodeRequest(unread)) {
          if (request === 'bad') return
          unread = unread.slice(request.length)
          await this.#handle(request)
        }
      }
    } catch {
      // The driver has closed the link.
    } finally {
      await this.#link.close()
    }
  }

  #send(bytes: Uint8Array): Promise<void> {
    return this.#link.write(bytes, never)
  }

  #table(): Uint8Array {
    return encodeReaderStates(this.#cards.readers)
  }

  async #sendChange(): Promise<void> {
    if (!this.#waiting) return
    this.#waiting = false
    await this.#send(encodeBody(CHANGE_FIELDS, {}))
  }

  #cardOf({ card = 0 }: PcscBody): ConnectedCard {
    const found = this.#connected.get(card)
    if (!found) throw new SmartCardError(rv.INVALID_HANDLE, 'no such connection')
    return found
  }

  async #connect({ reader = '' }: PcscBody): Promise<PcscBody> {
    if (this.#connected.size >= MAX_CARDS) throw new SmartCardError(rv.INTERNAL_ERROR, 'too many connections')
    const card = await this.#cards.connect(reader)
    this.#connected.set(++this.#lastHandle, card)
    return { card: this.#lastHandle, protocol: card.protocol }
  }

  async #disconnect(body: PcscBody): Promise<PcscBody> {
    const card = this.#cardOf(body)
    this.#connected.delete(body.card ?? 0)
    await card.disconnect(body.disposition === RESET)
    return {}
  }

  async #answer({ command, body }: PcscRequest): Promise<PcscBody> {
    if (command === 'version') return { major: MAJOR, minor: MINOR }
    if (command === 'establishContext') return { context: CONTEXT }
    if (command === 'connect') return this.#connect(body)
    if (command === 'disconnect') return this.#disconnect(body)
    // nfc-pcsc has no transactions: another program may use the card between two commands.
    if (command === 'beginTransaction' || command === 'endTransaction') this.#cardOf(body)
    else throw new SmartCardError(rv.INVALID_PARAMETER, 'not supported')
    return {}
  }

  async #transmit({ body, data }: PcscRequest): Promise<readonly [PcscBody, Uint8Array]> {
    const bytes = await this.#cardOf(body).transmit(data)
    if (bytes.length > MAX_APDU_BYTES) throw new SmartCardError(rv.INSUFFICIENT_BUFFER, 'the answer is too long')
    return [{ receiveLength: bytes.length }, bytes]
  }

  async #answerOrError(request: PcscRequest): Promise<readonly [PcscBody, Uint8Array]> {
    try {
      return request.command === 'transmit'
        ? await this.#transmit(request)
        : [await this.#answer(request), new Uint8Array(0)]
    } catch (error) {
      return [{ rv: error instanceof SmartCardError ? error.rv : rv.INTERNAL_ERROR }, new Uint8Array(0)]
    }
  }

  async #handle(request: PcscRequest): Promise<void> {
    if (request.command === 'getReadersState') return this.#send(this.#table())
    if (request.command === 'stopWaitingReaderStateChange') return this.#sendChange()
    if (request.command === 'waitReaderStateChange') {
      this.#waiting = true
      return this.#send(this.#table())
    }
    const [body, data] = await this.#answerOrError(request)
    await this.#send(encodeBody(PCSC_BODIES[request.command], { ...request.body, rv: rv.SUCCESS, ...body }))
    if (data.length > 0) await this.#send(data)
  }
}
