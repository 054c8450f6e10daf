import { assert } from '../../../policy/assert.ts'
import { NAME_BYTES, nameAt } from './messages.ts'

/** Maximum readers in pcscd up to protocol 4:5; each slot of a reader counts. */
export const MAX_READERS = 16

/**
 *     offset  0        128           132          136      140      173  176        180
 *             name     eventCounter  readerState  sharing  atr(33)  pad  atrLength  protocol   184
 *
 * `struct pubReaderStatesList` of pcsc-lite `src/eventhandler.h`. The answer to GET_READERS_STATE has 16 of these
 * structs.
 */
const STATE_BYTES = 184
export const READER_STATES_BYTES = MAX_READERS * STATE_BYTES
const MAX_ATR_BYTES = 33

const PRESENT = 0x04
const ABSENT = 0x02

/** One reader, or one slot of it. */
export interface ReaderState {
  /** Name that pcscd makes: product name, serial number if USB has one, numbers of the reader and the slot. */
  readonly name: string
  /** 16-bit counter that increases at each arrival and removal of a card. */
  readonly eventCounter: number
  readonly cardPresent: boolean
  /** Empty without a card, and for a card that does not answer. */
  readonly atr: Uint8Array
}

const LITTLE = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1

/** Decodes pcscd's table of readers; skips empty entries. */
export function decodeReaderStates(bytes: Uint8Array): ReaderState[] {
  assert(bytes.length >= READER_STATES_BYTES, 'the table of readers is read whole')
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const states: ReaderState[] = []
  for (let at = 0; at < READER_STATES_BYTES; at += STATE_BYTES) {
    const name = nameAt(bytes, at)
    if (name === '') continue
    const cardPresent = (view.getUint32(at + 132, LITTLE) & PRESENT) !== 0
    // While the card is starting, pcscd reports an impossible length.
    const atrLength = view.getUint32(at + 176, LITTLE)
    const atr =
      cardPresent && atrLength <= MAX_ATR_BYTES ? bytes.slice(at + 140, at + 140 + atrLength) : new Uint8Array(0)
    states.push({ name, eventCounter: view.getUint32(at + NAME_BYTES, LITTLE), cardPresent, atr })
  }
  return states
}

/** Encodes the table as pcscd does. */
export function encodeReaderStates(states: readonly ReaderState[]): Uint8Array {
  assert(states.length <= MAX_READERS, 'pcscd knows 16 readers')
  const bytes = new Uint8Array(READER_STATES_BYTES)
  const view = new DataView(bytes.buffer)
  states.forEach((state, i) => {
    const at = i * STATE_BYTES
    bytes.set(new TextEncoder().encode(state.name).subarray(0, NAME_BYTES - 1), at)
    view.setUint32(at + NAME_BYTES, state.eventCounter, LITTLE)
    view.setUint32(at + 132, state.cardPresent ? PRESENT : ABSENT, LITTLE)
    bytes.set(state.atr.subarray(0, MAX_ATR_BYTES), at + 140)
    view.setUint32(at + 176, state.atr.length, LITTLE)
  })
  return bytes
}

/** True if all relevant fields are equal. */
export function sameStates(a: readonly ReaderState[], b: readonly ReaderState[]): boolean {
  const relevantFields = (states: readonly ReaderState[]) =>
    JSON.stringify(states.map((s) => [s.name, s.eventCounter, s.cardPresent, [...s.atr]]))
  return relevantFields(a) === relevantFields(b)
}
