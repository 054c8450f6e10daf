import { type ResyncingCodec, slidingFramer, type FrameShape } from '../../kit/protocol/codec.ts'

/**
 * Frames of OSDP v2 (SIA OSDP 2.2, IEC 60839-11-5); lengths and numbers have the low byte first:
 *
 *     [FF] 53 | address | length 2 | control | [security block] | code | data | [MAC 4] | CRC 2 or checksum 1
 *
 * The address of a reply has its highest bit set. The length counts all bytes from the start byte 53 to the end of the
 * frame. Control: sequence number (2 bits), 04 CRC, 08 security block.
 */
export interface OsdpFrame {
  /** 0…126; 127 is the broadcast address. */
  readonly address: number
  /** True for frames from the device to the panel. */
  readonly reply: boolean
  /** 0…3. */
  readonly sequence: number
  readonly check: OsdpCheck
  /** Type and data of the security block, or null. From type 15h on the frame ends with a MAC. */
  readonly security: Uint8Array | null
  /** Command or reply code. */
  readonly code: number
  readonly data: Uint8Array
  /** First 4 bytes of the MAC, or null. */
  readonly mac: Uint8Array | null
}

export type OsdpCheck = 'crc' | 'checksum'

export const EVERYBODY = 0x7f
/** Lowest type of a security block that has a MAC. */
export const FIRST_WITH_MAC = 0x15

const BEGIN = 0x53
/** Byte that some devices send before a frame, to set the line to a defined level. */
const MARK = 0xff
const HEAD = 5
const MAC_LENGTH = 4
const REPLY_BIT = 0x80
const CRC_BIT = 0x04
const SECURITY_BIT = 0x08
/** Maximum length of a frame. A longer frame is noise. Frames of readers and locks are much shorter. */
export const MAX_OSDP_BYTES = 512

const CRC_TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : crc << 1
  return crc
})

/** CRC-16 with polynomial 1021h and start 1D0Fh; on the wire its low byte comes first (SIA OSDP 2.2, Annex C). */
export function osdpCrc(bytes: Uint8Array, start = 0, end = bytes.length): number {
  let crc = 0x1d0f
  for (let i = start; i < end; i++)
    crc = ((crc << 8) ^ (CRC_TABLE[((crc >>> 8) ^ (bytes[i] ?? 0)) & 0xff] ?? 0)) & 0xffff
  return crc
}

/** The byte that makes the sum of all bytes 0. */
export function osdpChecksum(bytes: Uint8Array, start = 0, end = bytes.length): number {
  let sum = 0
  for (let i = start; i < end; i++) sum += bytes[i] ?? 0
  return -sum & 0xff
}

const checkLength = (check: OsdpCheck): number => (check === 'crc' ? 2 : 1)

/**
 * Encodes a frame without MAC and check, but the length field of the frame includes their bytes. The MAC is computed
 * from the encoded bytes.
 */
export function osdpBody(frame: OsdpFrame): Uint8Array {
  const { security, data } = frame
  const block = security ? [security.length + 1, ...security] : []
  const hasMac = security !== null && (security[0] ?? 0) >= FIRST_WITH_MAC
  const bytes = new Uint8Array(HEAD + block.length + 1 + data.length)
  const length = bytes.length + (hasMac ? MAC_LENGTH : 0) + checkLength(frame.check)
  const control = frame.sequence | (frame.check === 'crc' ? CRC_BIT : 0) | (security ? SECURITY_BIT : 0)
  bytes.set([
    BEGIN,
    frame.address | (frame.reply ? REPLY_BIT : 0),
    length & 0xff,
    length >>> 8,
    control,
    ...block,
    frame.code,
  ])
  bytes.set(data, HEAD + block.length + 1)
  return bytes
}

function checkHolds(bytes: Uint8Array, start: number, end: number, check: OsdpCheck): boolean {
  if (check === 'checksum') return osdpChecksum(bytes, start, end) === 0
  return osdpCrc(bytes, start, end - 2) === ((bytes[end - 2] ?? 0) | ((bytes[end - 1] ?? 0) << 8))
}

/** Parses the frame between `start` and `end`, whose check is valid. Null if the parts of the frame do not fit. */
function parse(bytes: Uint8Array, start: number, end: number, check: OsdpCheck): OsdpFrame | null {
  const control = bytes[start + 4] ?? 0
  let at = start + HEAD
  let security: Uint8Array | null = null
  if (control & SECURITY_BIT) {
    const length = bytes[at] ?? 0
    if (length < 2 || at + length >= end) return null
    security = bytes.slice(at + 1, at + length)
    at += length
  }
  const macLength = security && (security[0] ?? 0) >= FIRST_WITH_MAC ? MAC_LENGTH : 0
  const dataEnd = end - checkLength(check) - macLength
  if (at + 1 > dataEnd) return null
  const address = bytes[start + 1] ?? 0
  return {
    address: address & ~REPLY_BIT,
    reply: (address & REPLY_BIT) !== 0,
    sequence: control & 3,
    check,
    security,
    code: bytes[at] ?? 0,
    data: bytes.slice(at + 1, dataEnd),
    mac: macLength > 0 ? bytes.slice(dataEnd, dataEnd + macLength) : null,
  }
}

const SHAPE: FrameShape<OsdpFrame> = {
  maxLength: 1 + MAX_OSDP_BYTES,
  read(bytes, from) {
    const marked = bytes[from] === MARK
    const start = marked ? from + 1 : from
    if (start >= bytes.length) return 'more'
    if (bytes[start] !== BEGIN) return 'none'
    const there = bytes.length - start
    if (there < HEAD) return 'more'
    const control = bytes[start + 4] ?? 0
    const length = (bytes[start + 2] ?? 0) | ((bytes[start + 3] ?? 0) << 8)
    const check: OsdpCheck = control & CRC_BIT ? 'crc' : 'checksum'
    if ((control & 0xf0) !== 0 || length > MAX_OSDP_BYTES || length < HEAD + 1 + checkLength(check)) return 'none'
    if (there < length) return 'more'
    const frame = checkHolds(bytes, start, start + length, check) ? parse(bytes, start, start + length, check) : null
    return frame ? { frame, length: length + (marked ? 1 : 0) } : 'none'
  },
}

/**
 * Makes a codec. The codec decodes both directions, because a device on an RS-485 line receives all frames, often also
 * those that it sent.
 */
export function osdpCodec(): ResyncingCodec<OsdpFrame> {
  const framer = slidingFramer(SHAPE)
  return {
    ...framer,
    get held() {
      return framer.held
    },
    encode(frame) {
      const body = osdpBody(frame)
      const mac = frame.mac ?? new Uint8Array(0)
      const end = 1 + body.length + mac.length
      const bytes = new Uint8Array(end + checkLength(frame.check))
      bytes[0] = MARK
      bytes.set(body, 1)
      bytes.set(mac, 1 + body.length)
      const check = frame.check === 'crc' ? osdpCrc(bytes, 1, end) : osdpChecksum(bytes, 1, end)
      bytes[end] = check & 0xff
      if (frame.check === 'crc') bytes[end + 1] = check >>> 8
      return bytes
    },
  }
}
