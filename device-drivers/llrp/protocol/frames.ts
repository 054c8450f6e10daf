import { assert } from '../../../policy/assert.ts'
import type { Noise, ResyncingCodec } from '../../kit/protocol/codec.ts'
import { FIRST_TLV, MESSAGE_ROWS_BY_TYPE, PARAMETER_ROWS_BY_TYPE, TV_LENGTHS, type Row } from './elements.ts'

/**
 * One message on the wire (LLRP 1.0.1, 16.1):
 *
 *     3 bits 0 · 3 bits version · 10 bits type · 32 bits length with this header · 32 bits id · body
 */
export interface LlrpFrame {
  readonly type: number
  readonly id: number
  /** A view of the received bytes. */
  readonly body: Uint8Array
}

export const HEADER_BYTES = 10
/** Version of LLRP 1.0.1; readers of 1.1 and 2.0 also start with this version. */
export const VERSION = 1
/** Maximum length of a message, bytes. A report of 1,000 tags with all fields has about 100 KB. */
export const MAX_MESSAGE_BYTES = 262_144
/**
 * Maximum length of a message while the codec resynchronises, bytes. This limits the number of bytes that a wrong start
 * can cost.
 */
const MAX_LENGTH_WHILE_LOST = 16_384

const word = (bytes: Uint8Array, at: number): number => ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)
const long = (bytes: Uint8Array, at: number): number => word(bytes, at) * 65_536 + word(bytes, at + 2)

/** Maximum nesting of parameters that the codec checks; the standard needs 7. */
const DEEPEST_LOOK = 8

/**
 * True if the bytes are consecutive parameters that end exactly at `end`. Also checks the content of known parameters.
 */
function areParameters(bytes: Uint8Array, from: number, end: number, depth: number): boolean {
  let at = from
  while (at < end) {
    const head = bytes[at] ?? 0
    let length: number
    if (head >= FIRST_TLV) {
      length = TV_LENGTHS[head - FIRST_TLV] ?? 0
      if (length === 0) return false
    } else {
      if (at + 4 > end || head > 3 || word(bytes, at) < FIRST_TLV) return false
      length = word(bytes, at + 2)
      if (length < 4 || at + length > end) return false
      const row = PARAMETER_ROWS_BY_TYPE[word(bytes, at)]
      if (row && !fits(row, bytes, at + 4, at + length, depth)) return false
    }
    at += length
  }
  return at === end
}

/** True if the bytes can be the fields and parameters of this element. */
function fits(row: Row<string>, bytes: Uint8Array, from: number, end: number, depth: number): boolean {
  const params = from + row.fieldBytes
  if (params > end) return false
  if (!row.isFixed || depth >= DEEPEST_LOOK) return true
  return areParameters(bytes, params, end, depth + 1)
}

/** Bytes of an unreadable message that are kept for the report. */
const SAMPLE_BYTES = 32

/** Length of the message at `at`; 0 while more bytes are needed, -1 if no message begins at `at`. */
function lengthAt(bytes: Uint8Array, at: number, end: number, isLost: boolean): number {
  const there = end - at
  if ((bytes[at] ?? 0) >> 2 !== VERSION) return -1
  if (there < 2) return 0
  const row = MESSAGE_ROWS_BY_TYPE[word(bytes, at) & 0x3ff]
  // A message of a later version or of a vendor has an unknown type. Such a message is valid, but must not be the first
  // message after a resynchronisation.
  if (!row && isLost) return -1
  if (there < 6) return 0
  const length = long(bytes, at + 2)
  if (length < HEADER_BYTES || length > (isLost ? MAX_LENGTH_WHILE_LOST : MAX_MESSAGE_BYTES)) return -1
  if (row) {
    const least = HEADER_BYTES + row.fieldBytes
    if (length < least || (isLost && row.isFixed && row.params.size === 0 && length !== least)) return -1
  }
  if (there < length) return 0
  return row && !fits(row, bytes, at + HEADER_BYTES, at + length, 0) ? -1 : length
}

/**
 * Finds messages in a stream without start marks. TCP loses no bytes, so a correct version and length are enough to
 * accept a header. If a header or its parameters are invalid, the codec resynchronises: it tries every byte as a start.
 * The codec then accepts only a known type and a length of at most 16 KiB that fits the type. The parameters must end
 * exactly with the body. The codec buffers less than one message, and examines each byte at most 16,384 times. LLRP has
 * no checksum, so one fault stays undetected. If a message lacks bytes in its last field, the codec takes the missing
 * bytes from the next message.
 */
export function llrpCodec(): ResyncingCodec<LlrpFrame> {
  return new LlrpCodec()
}

/** Finds messages in the bytes of one connection. */
class LlrpCodec implements ResyncingCodec<LlrpFrame> {
  #held: Uint8Array = new Uint8Array(0)
  #filled = 0
  #isLost = false
  #thrownAway = 0
  #sample: number[] = []

  push(chunk: Uint8Array): LlrpFrame[] {
    if (this.#filled === 0) return this.#scan(chunk, chunk.length, false)
    // Copies only the missing bytes of the message. The rest of the chunk is not copied.
    const lacks =
      this.#filled < 6 || this.#isLost
        ? chunk.length
        : Math.min(chunk.length, Math.max(0, long(this.#held, 2) - this.#filled))
    this.#append(chunk.subarray(0, lacks))
    const frames = this.#scan(this.#held, this.#filled, false)
    if (lacks === chunk.length) return frames
    const rest = chunk.subarray(lacks)
    if (this.#filled === 0) return [...frames, ...this.#scan(rest, rest.length, false)]
    this.#append(rest)
    return [...frames, ...this.#scan(this.#held, this.#filled, false)]
  }

  silence(): LlrpFrame[] {
    return this.#isLost ? this.#scan(this.#held, this.#filled, true) : []
  }

  takeNoise(): Noise | null {
    if (this.#thrownAway === 0) return null
    // TCP loses no bytes, so these are messages that the agent cannot read.
    const sample = Uint8Array.from(this.#sample)
    const noise = { bytes: this.#thrownAway, detail: 'bytes that are no LLRP message', sample }
    this.#thrownAway = 0
    this.#sample = []
    return noise
  }

  encode({ type, id, body }: LlrpFrame): Uint8Array {
    const bytes = new Uint8Array(HEADER_BYTES + body.length)
    const view = new DataView(bytes.buffer)
    view.setUint16(0, (VERSION << 10) | type)
    view.setUint32(2, bytes.length)
    view.setUint32(6, id)
    bytes.set(body, HEADER_BYTES)
    return bytes
  }

  get held(): number {
    return this.#filled
  }

  #scan(bytes: Uint8Array, end: number, isLast: boolean): LlrpFrame[] {
    const frames: LlrpFrame[] = []
    let at = 0
    while (at < end) {
      const length = lengthAt(bytes, at, end, this.#isLost)
      if (length > 0) {
        frames.push({
          type: word(bytes, at) & 0x3ff,
          id: long(bytes, at + 6),
          body: bytes.subarray(at + HEADER_BYTES, at + length),
        })
        this.#isLost = false
        at += length
      } else if (length < 0 || (isLast && this.#isLost)) {
        this.#isLost = true
        this.#thrownAway++
        if (this.#sample.length < SAMPLE_BYTES) this.#sample.push(bytes[at] ?? 0)
        at++
      } else {
        break
      }
    }
    // Frames are views of `bytes`, so the rest needs its own memory.
    if (at > 0 || bytes !== this.#held) this.#keep(bytes, at, end)
    return frames
  }

  #keep(bytes: Uint8Array, from: number, end: number): void {
    this.#filled = end - from
    assert(this.#filled < MAX_MESSAGE_BYTES, 'the codec holds less than one message')
    const expected = this.#filled >= 6 ? long(bytes, from + 2) : 0
    this.#held = new Uint8Array(this.#filled === 0 ? 0 : Math.max(this.#filled, Math.min(expected, MAX_MESSAGE_BYTES)))
    this.#held.set(bytes.subarray(from, end))
  }

  #append(chunk: Uint8Array): void {
    if (this.#filled + chunk.length > this.#held.length) {
      const larger = new Uint8Array(
        Math.max(this.#filled + chunk.length, Math.min(2 * this.#held.length, MAX_MESSAGE_BYTES)),
      )
      larger.set(this.#held.subarray(0, this.#filled))
      this.#held = larger
    }
    this.#held.set(chunk, this.#filled)
    this.#filled += chunk.length
  }
}
