import { MAX_READERS } from '../../pcsc/protocol/reader-states.ts'
import type { ReaderState } from '../../pcsc/protocol/reader-states.ts'

/** The machine's smart-card readers, as a native PC/SC package reports them. */
export interface SmartCards {
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
  /** Locks the card for this program until `end`, if the package supports it. */
  begin(): Promise<void>
  end(): Promise<void>
  transmit(apdu: Uint8Array): Promise<Uint8Array>
  disconnect(reset: boolean): Promise<void>
}

/** PC/SC rejected a call. */
export class SmartCardError extends Error {
  override name = 'SmartCardError'
  /** The PC/SC code; return-codes.ts lists the codes. */
  readonly rv: number

  constructor(rv: number, message: string) {
    super(message)
    this.rv = rv
  }
}

/** Readers and their cards, with an event counter for each card. */
interface ReaderTable {
  readonly readers: readonly ReaderState[]
  onChange(listener: () => void): void
  /**
   * Sets the presence of a card. Each new card must have a different `mark`. Returns the event counter of this card.
   */
  set(name: string, cardPresent: boolean, mark: number): number
  /** Sets the ATR of the card with this event counter. Does nothing if another card is on the reader now. */
  setAtr(name: string, eventCounter: number, atr: Uint8Array): void
  remove(name: string): void
}

const COUNTER_MASK = 0xffff

/** Makes an empty table. The table holds 16 readers, the maximum of pcscd's protocol, and ignores further ones. */
export function readerTable(): ReaderTable {
  const rows = new Map<string, ReaderState & { readonly mark: number }>()
  let changes = 0
  let listener = () => {}

  return {
    get readers() {
      return [...rows.values()]
    },
    onChange: (newListener) => void (listener = newListener),
    set(name, cardPresent, mark) {
      const row = rows.get(name)
      if (row && row.cardPresent === cardPresent && row.mark === mark) return row.eventCounter
      if (!row && rows.size >= MAX_READERS) return 0
      changes = (changes + 1) & COUNTER_MASK
      rows.set(name, { name, cardPresent, mark, eventCounter: changes, atr: new Uint8Array(0) })
      listener()
      return changes
    },
    setAtr(name, eventCounter, atr) {
      const row = rows.get(name)
      if (row?.eventCounter !== eventCounter) return
      rows.set(name, { ...row, atr })
      listener()
    },
    remove(name) {
      if (rows.delete(name)) listener()
    },
  }
}
