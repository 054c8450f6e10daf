import { EventEmitter } from 'node:events'
import type { NfcPcsc } from '../../device-drivers/transports/pcsc-library/smart-cards.ts'
import type { NfcTag } from '../../simulators/devices/nfc-tags.ts'

interface TrayFaults {
  disconnectFails: boolean
  hangs: boolean
  /** Another program that uses the tag before each command: the package has no transactions. */
  intruder: ((tag: NfcTag, next: Uint8Array) => void) | null
}

/** Simulated readers with tags, and a simulated `nfc-pcsc` that reports them with its events, errors and faults. */
export interface PcscTray {
  plug(name: string): void
  unplug(name: string): void
  put(name: string, tag: NfcTag): void
  take(name: string): void
  /** Stops the smart-card service. A new process finds it running again. */
  stop(): void
  readonly faults: TrayFaults
  /** Returns the package, as `require` does. */
  readonly load: () => NfcPcsc
}

const T1 = 2
const RESET = 1

const nested = (text: string) => Object.assign(new Error('An error occurred.'), { previous: new Error(text) })

/** Makes a tray without readers. */
export function pcscTray(): PcscTray {
  const slots = new Map<string, NfcTag | null>()
  const changed = new EventEmitter().setMaxListeners(0)
  const faults: TrayFaults = { disconnectFails: false, hangs: false, intruder: null }

  const emitChange = (name: string) => changed.emit('change', name)
  const answer = (tag: NfcTag, apdu: Uint8Array): Promise<Uint8Array> => {
    faults.intruder?.(tag, apdu)
    const reply = faults.hangs ? null : tag.answer(apdu)
    return reply === null ? new Promise(() => {}) : Promise.resolve(reply)
  }

  function nfcReader(name: string) {
    const lowLevel = {
      SCARD_RESET_CARD: RESET,
      disconnect: (_: number, done: (error: Error | null) => void) => {
        slots.get(name)?.reset?.()
        done(null)
      },
    }
    const reader = Object.assign(new EventEmitter(), {
      name,
      autoProcessing: true,
      card: null as { atr: Uint8Array } | null,
      connection: null as { protocol: number } | null,
      reader: lowLevel,
      async connect() {
        return (reader.connection = { protocol: T1 })
      },
      async disconnect() {
        if (faults.disconnectFails) throw nested('SCardDisconnect error: RPC transport error.(0x80100013)')
        reader.connection = null
      },
      async transmit(apdu: Buffer, most: number) {
        const tag = slots.get(name)
        if (!tag || !reader.connection) throw nested('SCardTransmit error: Card was removed.(0x80100069)')
        return Buffer.from((await answer(tag, apdu)).subarray(0, most))
      },
    })
    return reader
  }

  class Nfc extends EventEmitter {
    constructor() {
      super()
      const readers = new Map<string, ReturnType<typeof nfcReader>>()
      const update = (name: string) => {
        const tag = slots.get(name)
        let reader = readers.get(name)
        if (tag === undefined) {
          readers.delete(name)
          return void reader?.emit('end')
        }
        if (!reader) {
          reader = nfcReader(name)
          readers.set(name, reader)
          this.emit('reader', reader)
        }
        if (reader.card) {
          reader.card = null
          reader.connection = null
          reader.emit('card.off', {})
        }
        if (tag === null) return
        if (reader.autoProcessing) throw new Error('nfc-pcsc would read the UID by itself')
        reader.card = { atr: tag.atr }
        reader.connection = { protocol: T1 }
        reader.emit('card', { ...reader.card })
      }
      // The package reports the first readers later, never from the constructor.
      queueMicrotask(() => [...slots.keys()].forEach(update))
      changed.on('change', update)
      changed.once('stop', () => {
        changed.off('change', update)
        for (const reader of readers.values()) reader.emit('error', new Error('RPC transport error.(0x80100013)'))
        this.emit('error', new Error('SCardGetStatusChange error: RPC transport error.(0x80100013)'))
      })
    }
  }

  function show(name: string, tag: NfcTag | null): void {
    slots.set(name, tag)
    emitChange(name)
  }

  function lay(name: string, tag: NfcTag | null): void {
    const old = slots.get(name)
    if (old === undefined) throw new RangeError(`no reader ${name}`)
    // A new tag arrives only after the old one has left.
    if (old) show(name, null)
    if (tag) show(name, tag)
  }

  return {
    plug: (name) => show(name, null),
    unplug(name) {
      slots.delete(name)
      emitChange(name)
    },
    put: lay,
    take: (name) => lay(name, null),
    stop: () => void changed.emit('stop'),
    faults,
    load: () => ({ NFC: Nfc }) as unknown as NfcPcsc,
  }
}
