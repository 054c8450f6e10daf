import { type ResyncingCodec, slidingFramer, type FrameShape } from '../../kit/protocol/codec.ts'

/**
 * Frames of the MagicRF M100 and QM100 chips (YRM100, JRD-4035, R200 and others; MagicRF "M100 & QM100 firmware
 * manual", as M5Stack publishes it for its UHF-RFID unit):
 *
 *     BB | type | command | length (2, high byte first) | parameters | sum of type…parameters & FF | 7E
 */
export interface M100Frame {
  readonly type: M100Type
  readonly command: number
  readonly parameters: Uint8Array
}

/** The host sends commands; the chip sends answers and notices (tags). */
type M100Type = 'command' | 'answer' | 'notice'

const TYPES: readonly M100Type[] = ['command', 'answer', 'notice']
const BEGIN = 0xbb
const END = 0x7e
/** Bytes before and after the parameters. */
const HEAD = 5
const TAIL = 2

/** Maximum length of the parameters, bytes; the whole user memory of a tag is shorter. A longer frame is noise. */
export const MAX_M100_PARAMETERS = 512

function sum(bytes: Uint8Array, from: number, to: number): number {
  let total = 0
  for (let i = from; i < to; i++) total += bytes[i] ?? 0
  return total & 0xff
}

function shape(receives: ReadonlySet<M100Type>): FrameShape<M100Frame> {
  return {
    maxLength: HEAD + MAX_M100_PARAMETERS + TAIL,
    read(bytes, start) {
      if (bytes[start] !== BEGIN) return 'none'
      const there = bytes.length - start
      const type = TYPES[bytes[start + 1] ?? 0]
      if (there >= 2 && (type === undefined || !receives.has(type))) return 'none'
      if (there < HEAD) return 'more'
      const length = ((bytes[start + 3] ?? 0) << 8) | (bytes[start + 4] ?? 0)
      if (length > MAX_M100_PARAMETERS) return 'none'
      const sumAt = start + HEAD + length
      if (bytes.length < sumAt + TAIL) return 'more'
      if (type === undefined || bytes[sumAt + 1] !== END || bytes[sumAt] !== sum(bytes, start + 1, sumAt)) return 'none'
      return {
        frame: { type, command: bytes[start + 2] ?? 0, parameters: bytes.slice(start + HEAD, sumAt) },
        length: HEAD + length + TAIL,
      }
    },
  }
}

/** Makes a codec for one end. BB and 7E may occur within a frame, so the codec checks length and sum. */
export function m100Codec(end: 'host' | 'reader'): ResyncingCodec<M100Frame> {
  const framer = slidingFramer(shape(new Set<M100Type>(end === 'host' ? ['answer', 'notice'] : ['command'])))
  return {
    ...framer,
    get held() {
      return framer.held
    },
    encode({ type, command, parameters }) {
      const bytes = new Uint8Array(HEAD + parameters.length + TAIL)
      bytes.set([BEGIN, TYPES.indexOf(type), command, parameters.length >>> 8, parameters.length & 0xff])
      bytes.set(parameters, HEAD)
      bytes[HEAD + parameters.length] = sum(bytes, 1, HEAD + parameters.length)
      bytes[HEAD + parameters.length + 1] = END
      return bytes
    },
  }
}
