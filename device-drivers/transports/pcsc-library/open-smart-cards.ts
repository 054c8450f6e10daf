import type { PcscPackage } from '../link-settings.ts'
import { pcscMiniCards, type PcscMini } from './pcsc-mini.ts'
import { type SmartCards, readerTable, SmartCardError, type ConnectedCard } from './smart-cards.ts'
import * as rv from '../../pcsc/protocol/messages.ts'

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

const MAX_ANSWER_BYTES = 258

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
    // The package has no transactions: another program may use the card between two commands.
    begin: () => Promise.resolve(),
    end: () => Promise.resolve(),
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

/** Accesses smart cards through the package `nfc-pcsc`, which is compiled at installation. */
function nfcPcscCards(nfcPcsc: NfcPcsc): SmartCards {
  const table = readerTable()
  const readers = new Map<string, NfcReader>()
  let cards = 0
  let end = (_reason: string) => {}
  const ended = new Promise<string>((resolve) => {
    end = resolve
  })
  const failed = (error: Error) => end(`the smart-card service ended (${smartCardError(error).message})`)

  const nfc = new nfcPcsc.NFC()
  nfc.on('error', failed)
  nfc.on('reader', (reader) => {
    const { name } = reader
    // The package treats ISO 15693 tags as ISO 14443 tags, so the driver requests the UID itself.
    reader.autoProcessing = false
    readers.set(name, reader)
    table.set(name, false, cards)
    reader.on('card', ({ atr }) => table.setAtr(name, table.set(name, true, ++cards), Uint8Array.from(atr ?? [])))
    reader.on('card.off', () => void table.set(name, false, ++cards))
    // Ignores the error, because a reader also emits this error when it is unplugged. If the service ends, `nfc`
    // reports that.
    reader.on('error', () => {})
    reader.on('end', () => {
      readers.delete(name)
      table.remove(name)
    })
  })

  return {
    get readers() {
      return table.readers
    },
    onChange: table.onChange,
    async connect(name) {
      const reader = readers.get(name)
      if (!reader) throw new SmartCardError(rv.UNKNOWN_READER, 'no such reader')
      if (!reader.card) throw new SmartCardError(rv.NO_CARD, 'no card')
      const { protocol } = reader.connection ?? (await withSmartCardError(() => reader.connect()))
      return connectedCard(reader, protocol)
    },
    ended,
  }
}

/** Loads a package by its name; throws if it is not installed or does not fit this system. */
type LoadPackage = (name: PcscPackage) => unknown

const MAX_REASON_CHARS = 300

/** Reason why a package could not be loaded, such as `not installed`. */
function loadFailure(error: unknown, name: string): string {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'MODULE_NOT_FOUND' && message.includes(`'${name}'`)) return 'not installed'
  return (message.split('\n')[0] ?? '').replace(/:$/, '').slice(0, MAX_REASON_CHARS)
}

const OPEN: Readonly<Record<PcscPackage, (loaded: unknown) => SmartCards>> = {
  'pcsc-mini': (loaded) => pcscMiniCards(loaded as PcscMini),
  'nfc-pcsc': (loaded) => nfcPcscCards(loaded as NfcPcsc),
}

/** Opens the first package that loads. Throws an error with all reasons and the fix. */
export function openSmartCards(names: readonly PcscPackage[], load: LoadPackage): SmartCards {
  const reasons: string[] = []
  for (const name of names) {
    let loaded: unknown
    try {
      loaded = load(name)
    } catch (error) {
      reasons.push(`${name}: ${loadFailure(error, name)}`)
      continue
    }
    try {
      return OPEN[name](loaded)
    } catch (error) {
      throw new Error(`${name}: the smart-card service does not run (${(error as Error).message})`, { cause: error })
    }
  }
  // pcsc-mini's error names the package with the binary for this system.
  const binary = /@pcsc-mini\/[\w-]+/.exec(reasons.join(' '))?.[0]
  throw new Error(
    `no package for smart cards can be loaded (${reasons.join('; ')}); run npm install --no-save -O ${binary ?? names[0]}, see docs/reference/hardware/pcsc.md`,
  )
}
