import { EventEmitter } from 'node:events'
import type { NfcPcsc } from '../../device-drivers/transports/pcsc-library/open-smart-cards.ts'
import type { PcscMini } from '../../device-drivers/transports/pcsc-library/pcsc-mini.ts'
import type { NfcTag } from '../../simulators/devices/nfc-tags.ts'

interface Slot {
  tag: NfcTag | null
  /** Number of arrivals and removals of cards. */
  changes: number
}

/** Simulated readers with tags, and simulated native packages that report them with events, errors and faults. */
export interface PcscTray {
  plug(name: string): void
  unplug(name: string): void
  put(name: string, tag: NfcTag): void
  take(name: string): void
  /** Stops the smart-card service. */
  stop(): void
  start(): void
  readonly faults: { disconnectFails: boolean; hangs: boolean }
  readonly packages: { 'pcsc-mini': () => PcscMini; 'nfc-pcsc': () => NfcPcsc }
}

const EMPTY = 0x10
const PRESENT = 0x20
const T1 = 2
const RESET = 1
const PLACES = 4
/** The wrong ATR that pcsc-mini 0.1.3 sends with its events on Linux. */
const WRONG_ATR = Uint8Array.of(0x25, 0, 0, 0, 0, 0)

const named = (code: string) => Object.assign(new Error('[ Session ] Async task error'), { code })
const nested = (text: string) => Object.assign(new Error('An error occurred.'), { previous: new Error(text) })

/** Makes a tray without readers. */
export function pcscTray(): PcscTray {
  const slots = new Map<string, Slot>()
  const changed = new EventEmitter().setMaxListeners(0)
  const faults = { disconnectFails: false, hangs: false }
  let running = true

  const emitChange = (name: string) => changed.emit('change', name)
  /** The tag on the reader, if there was no change after the given number of changes; else null. */
  const tagOf = (name: string, changes: number) => {
    const slot = slots.get(name)
    return slot?.changes === changes ? slot.tag : null
  }
  const answer = (tag: NfcTag, apdu: Uint8Array): Promise<Uint8Array> => {
    const reply = faults.hangs ? null : tag.answer(apdu)
    return reply === null ? new Promise(() => {}) : Promise.resolve(reply)
  }

  function miniCard(name: string, free: () => void) {
    const { changes = 0 } = slots.get(name) ?? {}
    const there = () => {
      const tag = tagOf(name, changes)
      if (!tag) throw named('RemovedCard')
      return tag
    }
    return {
      protocol: () => T1,
      state: async () => ({ atr: there().atr }),
      transaction: async () => (there(), { end: async () => void there() }),
      transmit: async (apdu: Uint8Array) => answer(there(), apdu),
      async disconnect(disposition: number) {
        if (faults.disconnectFails) throw named('CommError')
        free()
        if (disposition === RESET) tagOf(name, changes)?.reset?.()
      },
    }
  }

  class MiniClient extends EventEmitter {
    start() {
      if (!running) throw named('NoService')
      const readers = new Map<string, EventEmitter>()
      let places = PLACES
      const update = (name: string) => {
        const slot = slots.get(name)
        if (!slot) {
          readers.get(name)?.emit('disconnect')
          return void readers.delete(name)
        }
        let reader = readers.get(name)
        if (!reader) {
          reader = Object.assign(new EventEmitter(), {
            name: () => name,
            async connect() {
              if (!slots.get(name)?.tag) throw named('NoSmartCard')
              if (places === 0) throw named('TooManyCardConnections')
              places--
              return miniCard(name, () => places++)
            },
          })
          readers.set(name, reader)
          this.emit('reader', reader)
        }
        reader.emit('change', { raw: (slot.changes << 16) | (slot.tag ? PRESENT : EMPTY) }, WRONG_ATR)
      }
      for (const name of slots.keys()) update(name)
      changed.on('change', update)
      changed.once('stop', () => {
        changed.off('change', update)
        this.emit('error', named('CommError'))
      })
      return this
    }
  }

  function nfcReader(name: string) {
    const lowLevel = {
      SCARD_RESET_CARD: RESET,
      disconnect: (_: number, done: (error: Error | null) => void) => {
        slots.get(name)?.tag?.reset?.()
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
        const tag = slots.get(name)?.tag
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
        const slot = slots.get(name)
        let reader = readers.get(name)
        if (!slot) {
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
        if (!slot.tag) return
        if (reader.autoProcessing) throw new Error('nfc-pcsc would read the UID by itself')
        reader.card = { atr: slot.tag.atr }
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

  function lay(name: string, tag: NfcTag | null): void {
    const slot = slots.get(name)
    if (!slot) throw new RangeError(`no reader ${name}`)
    if (slot.tag) {
      Object.assign(slot, { tag: null, changes: slot.changes + 1 })
      emitChange(name)
    }
    if (!tag) return
    Object.assign(slot, { tag, changes: slot.changes + 1 })
    emitChange(name)
  }

  return {
    plug(name) {
      slots.set(name, { tag: null, changes: 0 })
      emitChange(name)
    },
    unplug(name) {
      slots.delete(name)
      emitChange(name)
    },
    put: lay,
    take: (name) => lay(name, null),
    stop() {
      running = false
      changed.emit('stop')
    },
    start: () => void (running = true),
    faults,
    packages: {
      'pcsc-mini': () => ({ Client: MiniClient }) as unknown as PcscMini,
      'nfc-pcsc': () => ({ NFC: Nfc }) as unknown as NfcPcsc,
    },
  }
}
