import * as rv from '../../pcsc/protocol/messages.ts'
import { readerTable, SmartCardError } from './smart-cards.ts'
import type { ConnectedCard, SmartCards } from './smart-cards.ts'

/** The part of the package `pcsc-mini` that the agent uses. */
export interface PcscMini {
  readonly Client: new () => MiniClient
}

interface MiniClient {
  on(event: 'error', listener: (error: Error & { code?: string }) => void): unknown
  on(event: 'reader', listener: (reader: MiniReader) => void): unknown
  /** Throws if the smart-card service does not run. */
  start(): unknown
}

interface MiniReader {
  name(): string
  on(event: 'change', listener: (status: { readonly raw: number }) => void): unknown
  on(event: 'disconnect', listener: () => void): unknown
  connect(mode: number): Promise<MiniCard>
}

interface MiniCard {
  protocol(): number
  state(): Promise<{ readonly atr: Uint8Array }>
  transaction(): Promise<{ end(disposition: number): Promise<void> }>
  transmit(apdu: Uint8Array): Promise<Uint8Array>
  disconnect(disposition: number): Promise<void>
}

const PRESENT = 0x20
const MUTE = 0x200
const SHARED = 2
const LEAVE = 0
const RESET = 1
const COUNTER_BITS = 16

/** Names of the package's errors that the driver distinguishes or explains. */
const CODES: Readonly<Record<string, number>> = {
  CommError: rv.COMM_ERROR,
  InvalidHandle: rv.INVALID_HANDLE,
  NoService: rv.NO_SERVICE,
  NoSmartCard: rv.NO_CARD,
  NotTransacted: rv.NOT_TRANSACTED,
  ProtoMismatch: rv.PROTOCOL_MISMATCH,
  ReaderUnavailable: rv.READER_UNAVAILABLE,
  RemovedCard: rv.REMOVED,
  ResetCard: rv.CARD_RESET,
  ServiceStopped: rv.SERVICE_STOPPED,
  SharingViolation: rv.SHARING_VIOLATION,
  Timeout: rv.TIMEOUT,
  UnknownReader: rv.UNKNOWN_READER,
  UnpoweredCard: rv.UNPOWERED,
  UnresponsiveCard: rv.UNRESPONSIVE,
}

const codeOf = (error: unknown): string => String((error as { code?: unknown }).code ?? (error as Error).message)

function smartCardError(error: unknown): SmartCardError {
  const code = codeOf(error)
  return new SmartCardError(CODES[code] ?? rv.INTERNAL_ERROR, code)
}

/** Rethrows a rejection of the package as `SmartCardError`. */
async function withSmartCardError<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise
  } catch (error) {
    throw smartCardError(error)
  }
}

function connectedCard(card: MiniCard): ConnectedCard {
  let transaction: { end(disposition: number): Promise<void> } | null = null
  return {
    protocol: card.protocol(),
    async begin() {
      transaction = await withSmartCardError(card.transaction())
    },
    async end() {
      if (!transaction) throw new SmartCardError(rv.NOT_TRANSACTED, 'no transaction')
      await withSmartCardError(transaction.end(LEAVE))
      transaction = null
    },
    transmit: (apdu) => withSmartCardError(card.transmit(apdu)),
    disconnect: (reset) => withSmartCardError(card.disconnect(reset ? RESET : LEAVE)),
  }
}

/**
 * Readers of the package `pcsc-mini`, which has prebuilt binaries. Throws `SmartCardError` if the service does not run.
 */
export function pcscMiniCards(pcsc: PcscMini): SmartCards {
  const table = readerTable()
  const readers = new Map<string, MiniReader>()
  let end = (_reason: string) => {}
  const ended = new Promise<string>((resolve) => {
    end = resolve
  })

  async function connect(name: string): Promise<MiniCard> {
    const reader = readers.get(name)
    if (!reader) throw new SmartCardError(rv.UNKNOWN_READER, 'no such reader')
    try {
      return await reader.connect(SHARED)
    } catch (error) {
      // The package allows four connections. If the package fails to end a connection, that connection stays occupied
      // until the process ends.
      if (codeOf(error) === 'TooManyCardConnections') end('pcsc-mini has no place for another connection')
      throw smartCardError(error)
    }
  }

  /** Reads the ATR from a connected card: on Linux, pcsc-mini 0.1.3 sends a wrong ATR with its events. */
  async function readAtr(name: string, eventCounter: number): Promise<void> {
    if (table.readers.find((row) => row.name === name)?.atr.length !== 0) return
    try {
      const card = await connect(name)
      const atr = await withSmartCardError(card.state()).then((state) => Uint8Array.from(state.atr))
      await withSmartCardError(card.disconnect(LEAVE))
      table.setAtr(name, eventCounter, atr)
    } catch {
      // Ignores the error, because the card has gone or another program uses it exclusively. At the next change of
      // state this function is called again.
    }
  }

  const client = new pcsc.Client()
  client.on('error', (error) => end(`the smart-card service ended (${codeOf(error)})`))
  client.on('reader', (reader) => {
    const name = reader.name()
    readers.set(name, reader)
    reader.on('change', ({ raw }) => {
      const isPresent = (raw & PRESENT) !== 0
      const eventCounter = table.set(name, isPresent, raw >>> COUNTER_BITS)
      if (isPresent && (raw & MUTE) === 0) void readAtr(name, eventCounter)
    })
    reader.on('disconnect', () => {
      readers.delete(name)
      table.remove(name)
    })
  })
  try {
    client.start()
  } catch (error) {
    throw smartCardError(error)
  }
  return {
    get readers() {
      return table.readers
    },
    onChange: table.onChange,
    connect: async (name) => connectedCard(await connect(name)),
    ended,
  }
}
