import { type ResyncingCodec, slidingFramer, type FrameShape } from '../../kit/protocol/codec.ts'
import { type ModbusFrame, pduLength, type Direction } from './pdu.ts'

/**
 * Length of the header, bytes. Its fields: transaction number (2 bytes), protocol (2 bytes, value always 0), length of
 * the rest (2 bytes), unit (1 byte); see Modbus messaging on TCP/IP V1.0b, 3.1.3.
 */
const HEADER = 7
const MAX_PDU = 253

const word = (bytes: Uint8Array, at: number): number => ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)

function shape(direction: Direction): FrameShape<ModbusFrame> {
  return {
    maxLength: HEADER + MAX_PDU,
    read(bytes, start) {
      const there = bytes.length - start
      if (there >= 4 && word(bytes, start + 2) !== 0) return 'none'
      if (there < HEADER) return 'more'
      const length = word(bytes, start + 4) - 1
      if (length < 1 || length > MAX_PDU) return 'none'
      const known = pduLength(direction, bytes, start + HEADER)
      // There is no checksum, so the length must fit the function code.
      if (known === 'unknown' ? direction === 'answer' : known !== 'more' && known !== length) return 'none'
      const end = start + HEADER + length
      if (bytes.length < end) return 'more'
      if (known === 'more') return 'none'
      return {
        frame: { transaction: word(bytes, start), unit: bytes[start + 6] ?? 0, pdu: bytes.slice(start + HEADER, end) },
        length: end - start,
      }
    },
  }
}

/** Modbus TCP: the PDU after an MBAP header. `receives` is the direction that this codec decodes. */
export function tcpCodec(receives: Direction): ResyncingCodec<ModbusFrame> {
  const framer = slidingFramer(shape(receives))
  return {
    ...framer,
    get held() {
      return framer.held
    },
    encode({ transaction, unit, pdu }) {
      const bytes = new Uint8Array(HEADER + pdu.length)
      bytes.set([transaction >>> 8, transaction & 0xff, 0, 0, (pdu.length + 1) >>> 8, (pdu.length + 1) & 0xff, unit])
      bytes.set(pdu, HEADER)
      return bytes
    },
  }
}
