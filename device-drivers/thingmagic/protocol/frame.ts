import { type ResyncingCodec, slidingFramer, type FrameShape } from '../../kit/protocol/codec.ts'

/**
 * Frames of ThingMagic (JADAK, Novanta) reader modules; numbers have the high byte first:
 *
 *     command  FF | length | opcode |            data | CRC 2
 *     reply    FF | length | opcode | status 2 | data | CRC 2
 *
 * The length counts the data alone. Source: SparkFun's Simultaneous RFID Tag Reader library and its communication logs
 * (MIT).
 */
export interface ThingMagicFrame {
  readonly opcode: number
  /** Status of a reply, 0 is success; null in a command. */
  readonly status: number | null
  readonly data: Uint8Array
}

export const THINGMAGIC = {
  version: 0x03,
  bootFirmware: 0x04,
  currentProgram: 0x0c,
  /** Reports while the module reads: tags, and a keepalive once a second. */
  readMany: 0x22,
  /** Starts and stops reading. */
  tagOperation: 0x2f,
  setAntennas: 0x91,
  setReadPower: 0x92,
  setProtocol: 0x93,
  setOutput: 0x96,
  setRegion: 0x97,
  setOption: 0x9a,
} as const

const OPCODES: ReadonlySet<number> = new Set(Object.values(THINGMAGIC))
const BEGIN = 0xff
const MAX_DATA = 0xff
/** Bytes besides the data: begin, length, opcode and CRC; in replies also the status. */
const COMMAND_EXTRA = 5
const REPLY_EXTRA = 7

/**
 * The modules' CRC of the bytes from `start` up to `end`. It is CRC-CCITT with start FFFFh, except that the data is
 * shifted in at the low end.
 */
function thingMagicCrc(bytes: Uint8Array, start = 0, end = bytes.length): number {
  let crc = 0xffff
  for (let i = start; i < end; i++) {
    const byte = bytes[i] ?? 0
    crc = (((crc << 4) | (byte >>> 4)) ^ ((crc >>> 12) * 0x1021)) & 0xffff
    crc = (((crc << 4) | (byte & 15)) ^ ((crc >>> 12) * 0x1021)) & 0xffff
  }
  return crc
}

const word = (bytes: Uint8Array, at: number): number => ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)

function shape(isReply: boolean): FrameShape<ThingMagicFrame> {
  const extra = isReply ? REPLY_EXTRA : COMMAND_EXTRA
  return {
    maxLength: MAX_DATA + extra,
    read(bytes, start) {
      if (bytes[start] !== BEGIN) return 'none'
      const there = bytes.length - start
      if (there < 3) return 'more'
      // FF is common in noise, so only a known opcode can begin a frame.
      if (!OPCODES.has(bytes[start + 2] ?? 0)) return 'none'
      const length = (bytes[start + 1] ?? 0) + extra
      if (there < length) return 'more'
      const end = start + length
      if (thingMagicCrc(bytes, start + 1, end - 2) !== word(bytes, end - 2)) return 'none'
      const dataAt = start + (isReply ? 5 : 3)
      return {
        frame: {
          opcode: bytes[start + 2] ?? 0,
          status: isReply ? word(bytes, start + 3) : null,
          data: bytes.slice(dataAt, end - 2),
        },
        length,
      }
    },
  }
}

/** Makes a codec for one end. The host decodes replies; the reader decodes commands. */
export function thingMagicCodec(end: 'host' | 'reader'): ResyncingCodec<ThingMagicFrame> {
  const framer = slidingFramer(shape(end === 'host'))
  return {
    ...framer,
    get held() {
      return framer.held
    },
    encode({ opcode, status, data }) {
      const head =
        status === null ? [BEGIN, data.length, opcode] : [BEGIN, data.length, opcode, status >>> 8, status & 0xff]
      const bytes = new Uint8Array(head.length + data.length + 2)
      bytes.set(head)
      bytes.set(data, head.length)
      const crc = thingMagicCrc(bytes, 1, bytes.length - 2)
      bytes.set([crc >>> 8, crc & 0xff], bytes.length - 2)
      return bytes
    },
  }
}
