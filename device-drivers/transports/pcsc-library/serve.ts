import {
  CHANGE_FIELDS,
  decodeRequest,
  encodeBody,
  MOST_APDU_BYTES,
  PCSC_BODIES,
} from '../../protocols/pcsc/messages.ts'
import type { PcscBody, PcscRequest } from '../../protocols/pcsc/messages.ts'
import { encodeReaderStates, MOST_READERS } from '../../protocols/pcsc/reader-states.ts'
import * as rv from '../../protocols/pcsc/return-codes.ts'
import type { ByteLink } from '../byte-link.ts'
import { SmartCardError } from './smart-cards.ts'
import type { ConnectedCard, SmartCards } from './smart-cards.ts'

const MAJOR = 4
const MINOR = 4
const CONTEXT = 1
const RESET = 1
/** The driver has one card connected at a time. */
const MOST_CARDS = 4

const never = new AbortController().signal

/**
 * Answers one driver in pcscd's protocol 4:4 out of a native PC/SC package, so that the driver is the same on every
 * system. Resolves when the driver has closed the link, when it sends no request of this protocol, or when the package
 * has ended.
 */
export async function serveSmartCards(cards: SmartCards, link: ByteLink): Promise<void> {
  const connected = new Map<number, ConnectedCard>()
  let lastHandle = 0
  let waiting = false

  const send = (bytes: Uint8Array) => link.write(bytes, never)
  const table = () => encodeReaderStates(cards.readers.slice(0, MOST_READERS))

  async function sendChange(): Promise<void> {
    if (!waiting) return
    waiting = false
    await send(encodeBody(CHANGE_FIELDS, {}))
  }

  function cardOf({ card = 0 }: PcscBody): ConnectedCard {
    const found = connected.get(card)
    if (!found) throw new SmartCardError(rv.INVALID_HANDLE, 'no such connection')
    return found
  }

  async function connect({ reader = '' }: PcscBody): Promise<PcscBody> {
    if (connected.size >= MOST_CARDS) throw new SmartCardError(rv.INTERNAL_ERROR, 'too many connections')
    const card = await cards.connect(reader)
    connected.set(++lastHandle, card)
    return { card: lastHandle, protocol: card.protocol }
  }

  async function disconnect(body: PcscBody): Promise<PcscBody> {
    const card = cardOf(body)
    connected.delete(body.card ?? 0)
    await card.disconnect(body.disposition === RESET)
    return {}
  }

  async function answer({ command, body }: PcscRequest): Promise<PcscBody> {
    if (command === 'version') return { major: MAJOR, minor: MINOR }
    if (command === 'establishContext') return { context: CONTEXT }
    if (command === 'connect') return connect(body)
    if (command === 'disconnect') return disconnect(body)
    if (command === 'beginTransaction') await cardOf(body).begin()
    else if (command === 'endTransaction') await cardOf(body).end()
    else if (command !== 'releaseContext') throw new SmartCardError(rv.INVALID_PARAMETER, 'not supported')
    return {}
  }

  async function transmit({ body, data }: PcscRequest): Promise<readonly [PcscBody, Uint8Array]> {
    const bytes = await cardOf(body).transmit(data)
    if (bytes.length > MOST_APDU_BYTES) throw new SmartCardError(rv.INSUFFICIENT_BUFFER, 'the answer is too long')
    return [{ receiveLength: bytes.length }, bytes]
  }

  async function ask(request: PcscRequest): Promise<readonly [PcscBody, Uint8Array]> {
    try {
      return request.command === 'transmit' ? await transmit(request) : [await answer(request), new Uint8Array(0)]
    } catch (error) {
      return [{ rv: error instanceof SmartCardError ? error.rv : rv.INTERNAL_ERROR }, new Uint8Array(0)]
    }
  }

  async function handle(request: PcscRequest): Promise<void> {
    if (request.command === 'getReadersState') return send(table())
    if (request.command === 'stopWaitingReaderStateChange') return sendChange()
    if (request.command === 'waitReaderStateChange') {
      waiting = true
      return send(table())
    }
    const [body, data] = await ask(request)
    await send(encodeBody(PCSC_BODIES[request.command], { ...request.body, rv: rv.SUCCESS, ...body }))
    if (data.length > 0) await send(data)
  }

  cards.onChange(() => void sendChange().catch(() => {}))
  void cards.ended.then(() => link.close())
  let held: Uint8Array = new Uint8Array(0)
  try {
    for await (const chunk of link.bytes) {
      held = Uint8Array.from([...held, ...chunk])
      for (let request = decodeRequest(held); request; request = decodeRequest(held)) {
        if (request === 'bad') return
        held = held.slice(request.length)
        await handle(request)
      }
    }
  } catch {
    // The driver is gone.
  } finally {
    await link.close()
  }
}
