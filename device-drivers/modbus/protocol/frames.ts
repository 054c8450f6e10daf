import { type ResyncingCodec, slidingFramer, type FrameShape } from '../../kit/protocol/codec.ts'
import { type ModbusFrame, pduLength, type Direction } from './pdu.ts'

const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xa001 : crc >>> 1
  return crc
})

/**
 * CRC-16/MODBUS of `bytes` from `start` up to `end`; on the wire its low byte comes first (Modbus over serial line
 * V1.02, 6.2.2).
 */
export function crc16(bytes: Uint8Array, start = 0, end = bytes.length): number {
  let crc = 0xffff
  for (let i = start; i < end; i++) crc = (crc >>> 8) ^ (TABLE[(crc ^ (bytes[i] ?? 0)) & 0xff] ?? 0)
  return crc
}

/** Maximum length of a frame, bytes: unit, at most 253 bytes of PDU, CRC. */
const MAX_FRAME = 256

function crcHolds(bytes: Uint8Array, start: number, end: number): boolean {
  return crc16(bytes, start, end - 2) === ((bytes[end - 2] ?? 0) | ((bytes[end - 1] ?? 0) << 8))
}

function rtuShape(direction: Direction): FrameShape<ModbusFrame> {
  const frame = (bytes: Uint8Array, start: number, end: number) => ({
    frame: { transaction: 0, unit: bytes[start] ?? 0, pdu: bytes.slice(start + 1, end - 2) },
    length: end - start,
  })
  return {
    maxLength: MAX_FRAME,
    read(bytes, start, last) {
      const body = pduLength(direction, bytes, start + 1)
      if (body === 'more') return 'more'
      if (body === 'unknown') {
        // The length of a request with an unsupported function code is unknown, so only silence ends the request. The
        // board must receive the whole request to reject it.
        if (direction === 'answer') return 'none'
        if (!last) return 'more'
        return bytes.length - start >= 4 && crcHolds(bytes, start, bytes.length)
          ? frame(bytes, start, bytes.length)
          : 'none'
      }
      const end = start + 1 + body + 2
      if (end - start > MAX_FRAME) return 'none'
      if (bytes.length < end) return 'more'
      return crcHolds(bytes, start, end) ? frame(bytes, start, end) : 'none'
    },
  }
}

/**
 * Modbus RTU (over serial line V1.02): `unit · PDU · CRC`. The function code determines the length, so a frame is
 * complete without a pause. After a wrong CRC the search continues with the next byte. `receives` is the direction that
 * this codec decodes.
 */
export function rtuCodec(receives: Direction): ResyncingCodec<ModbusFrame> {
  const framer = slidingFramer(rtuShape(receives))
  return {
    ...framer,
    get held() {
      return framer.held
    },
    encode({ unit, pdu }) {
      const bytes = new Uint8Array(pdu.length + 3)
      bytes[0] = unit
      bytes.set(pdu, 1)
      const crc = crc16(bytes, 0, pdu.length + 1)
      bytes[pdu.length + 1] = crc & 0xff
      bytes[pdu.length + 2] = crc >>> 8
      return bytes
    },
  }
}

/**
 * Length of the header, bytes. Its fields: transaction number (2 bytes), protocol (2 bytes, value always 0), length of
 * the rest (2 bytes), unit (1 byte); see Modbus messaging on TCP/IP V1.0b, 3.1.3.
 */
const HEADER = 7
const MAX_PDU = 253

const word = (bytes: Uint8Array, at: number): number => ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)

function tcpShape(direction: Direction): FrameShape<ModbusFrame> {
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
  const framer = slidingFramer(tcpShape(receives))
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
