import * as rv from '../../pcsc/protocol/messages.ts'
import { MAX_READERS, type ReaderState } from '../../pcsc/protocol/messages.ts'

/** The part of the package `nfc-pcsc` that the agent uses. */
export interface NfcPcsc {
  /** The constructor blocks for ever while the smart-card service does not run. */
  readonly NFC: new () => Nfc
}

interface Nfc {
  on(event: 'reader', listener: (reader: NfcReader) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
}

interface NfcReader {
  readonly name: string
  autoProcessing: boolean
  /** Null while no card is on the reader. */
  readonly card: object | null
  connection: { readonly protocol: number } | null
  /** The underlying reader of `@pokusew/pcsclite`. */
  readonly reader: {
    readonly SCARD_RESET_CARD: number
    disconnect(disposition: number, done: (error?: Error | null) => void): void
  }
  on(event: 'card', listener: (card: { readonly atr?: Uint8Array }) => void): unknown
  on(event: 'card.off' | 'end', listener: () => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  connect(): Promise<{ readonly protocol: number }>
  disconnect(): Promise<unknown>
  transmit(apdu: Buffer, mostAnswerBytes: number): Promise<Buffer>
}

/** The machine's smart-card readers. */
export interface SmartCards {
  /** At most 16 readers, the maximum of pcscd's protocol; further ones are ignored. */
  readonly readers: readonly ReaderState[]
  /** Sets the listener that is called after each change of `readers`. A later call replaces the listener. */
  onChange(listener: () => void): void
  /** Connects to the card on a reader; other programs may also use the card. Rejects with `SmartCardError`. */
  connect(reader: string): Promise<ConnectedCard>
  /**
   * Resolves with the reason when the package will report no more changes. The process that loaded the package must
   * then be restarted.
   */
  readonly ended: Promise<string>
}

/** A card between `connect` and `disconnect`. A call that fails rejects with `SmartCardError`. */
export interface ConnectedCard {
  /** 1 for T=0, 2 for T=1. */
  readonly protocol: number
  transmit(apdu: Uint8Array): Promise<Uint8Array>
  disconnect(reset: boolean): Promise<void>
}

/** PC/SC rejected a call. */
export class SmartCardError extends Error {
  override name = 'SmartCardError'
  /** The PC/SC code; messages.ts lists the codes. */
  readonly rv: number

  constructor(rv: number, message: string) {
    super(message)
    this.rv = rv
  }
}

const MAX_ANSWER_BYTES = 258
const COUNTER_MASK = 0xffff
const NO_ATR = new Uint8Array(0)

/** The property `previous` of the error has a message with the PC/SC code: `… error: …(0x80100069)`. */
function smartCardError(error: unknown): SmartCardError {
  const { message, previous } = error as Error & { previous?: Error }
  const text = previous?.message ?? message
  const code = /0x(8010[0-9a-f]{4})/i.exec(text)?.[1]
  return new SmartCardError(code === undefined ? rv.INTERNAL_ERROR : Number.parseInt(code, 16), text)
}

async function withSmartCardError<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw smartCardError(error)
  }
}

function connectedCard(reader: NfcReader, protocol: number): ConnectedCard {
  return {
    protocol,
    async transmit(apdu) {
      // The card was removed. In this case the package would throw an error without a code.
      if (!reader.card) throw new SmartCardError(rv.REMOVED, 'the card was taken away')
      return withSmartCardError(() => reader.transmit(Buffer.from(apdu), MAX_ANSWER_BYTES))
    },
    async disconnect(reset) {
      if (!reader.connection) return
      if (!reset) return void (await withSmartCardError(() => reader.disconnect()))
      reader.connection = null
      await withSmartCardError(
        () =>
          new Promise<void>((resolve, reject) => {
            reader.reader.disconnect(reader.reader.SCARD_RESET_CARD, (error) => (error ? reject(error) : resolve()))
          }),
      )
    },
  }
}

function smartCards({ NFC }: NfcPcsc): SmartCards {
  const readers = new Map<string, { readonly reader: NfcReader; readonly state: ReaderState }>()
  let changes = 0
  let listener = () => {}
  let end = (_reason: string) => {}
  const ended = new Promise<string>((resolve) => {
    end = resolve
  })

  function setState(reader: NfcReader, cardPresent: boolean, atr: Uint8Array): void {
    const { name } = reader
    if (!readers.has(name) && readers.size >= MAX_READERS) return
    changes = (changes + 1) & COUNTER_MASK
    readers.set(name, { reader, state: { name, cardPresent, eventCounter: changes, atr } })
    listener()
  }

  const nfc = new NFC()
  nfc.on('error', (error) => end(`the smart-card service ended (${smartCardError(error).message})`))
  nfc.on('reader', (reader) => {
    // The package treats ISO 15693 tags as ISO 14443 tags, so the driver requests the UID itself.
    reader.autoProcessing = false
    setState(reader, false, NO_ATR)
    reader.on('card', ({ atr }) => setState(reader, true, Uint8Array.from(atr ?? NO_ATR)))
    reader.on('card.off', () => setState(reader, false, NO_ATR))
    // Ignores the error, because a reader also emits this error when it is unplugged. If the service ends, `nfc`
    // reports that.
    reader.on('error', () => {})
    reader.on('end', () => {
      if (readers.delete(reader.name)) listener()
    })
  })

  return {
    get readers() {
      return [...readers.values()].map(({ state }) => state)
    },
    onChange: (newListener) => void (listener = newListener),
    async connect(name) {
      const reader = readers.get(name)?.reader
      if (!reader) throw new SmartCardError(rv.UNKNOWN_READER, 'no such reader')
      if (!reader.card) throw new SmartCardError(rv.NO_CARD, 'no card')
      const { protocol } = reader.connection ?? (await withSmartCardError(() => reader.connect()))
      return connectedCard(reader, protocol)
    },
    ended,
  }
}

const MAX_REASON_CHARS = 300

/** Reason why the package could not be loaded, such as `not installed`. */
function loadFailure(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'MODULE_NOT_FOUND' && message.includes("'nfc-pcsc'")) return 'not installed'
  return (message.split('\n')[0] ?? '').replace(/:$/, '').slice(0, MAX_REASON_CHARS)
}

/**
 * Accesses smart cards through the package `nfc-pcsc`, which `load` returns. Throws an error with the reason and the
 * fix.
 */
export function openSmartCards(load: () => unknown): SmartCards {
  let loaded: unknown
  try {
    loaded = load()
  } catch (error) {
    throw new Error(
      `the package nfc-pcsc cannot be loaded (${loadFailure(error)}); run npm install --no-save -P nfc-pcsc, see docs/reference/hardware/pcsc.md`,
      { cause: error },
    )
  }
  try {
    return smartCards(loaded as NfcPcsc)
  } catch (error) {
    throw new Error(`nfc-pcsc: the smart-card service does not run (${(error as Error).message})`, { cause: error })
  }
}
