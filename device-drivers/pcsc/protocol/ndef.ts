/** One read from a tag: `length` bytes at page or block `address`. */
interface MemoryRead {
  readonly address: number
  readonly length: number
}

/**
 * Yields each read and receives the bytes, or null if they are unreadable. Returns the message, or null if there is
 * none.
 */
export type NdefRead = Generator<MemoryRead, Uint8Array | null, Uint8Array | null>

/**
 * Maximum length of a message, bytes. Longer messages are neither receipts nor links to items, and would keep the
 * reader busy.
 */
export const MAX_NDEF_BYTES = 1_024

const MAGIC = 0xe1
const NULL_TLV = 0x00
const NDEF_TLV = 0x03
const TERMINATOR_TLV = 0xfe
const CC_BYTES = 4
/** Bytes of a page or block. */
const UNIT_BYTES = 4

interface Layout {
  /** Address of the capability container. */
  readonly first: number
  /** Bytes of one read. */
  readonly each: number
}

/** Pages of 4 bytes, read four at a time. */
const TYPE2: Layout = { first: 3, each: 16 }
/** Blocks of 4 bytes. */
const TYPE5: Layout = { first: 0, each: 4 }

/**
 * Finds the NDEF message of an NFC Forum Type 2 (NTAG, Ultralight) or Type 5 (ISO 15693) tag. The memory of such a tag
 * has a capability container {E1, version, size of the data / 8, access}, then blocks {tag, length, value}. The search
 * never reads beyond the size in the container. Beyond this size, some tags stop answering, and others continue at the
 * first page.
 */
function* readMessage({ first, each }: Layout): NdefRead {
  const held: number[] = []
  let next = first
  let size = CC_BYTES

  function* fetchTo(end: number): Generator<MemoryRead, boolean, Uint8Array | null> {
    while (held.length < end) {
      if (end > size || next > 0xff) return false
      const read = yield { address: next, length: each }
      // Some readers return one page or block for each read, whatever the requested length.
      const units = Math.floor(Math.min(read?.length ?? 0, each) / UNIT_BYTES)
      if (!read || units === 0) return false
      held.push(...read.subarray(0, units * UNIT_BYTES))
      next += units
    }
    return true
  }
  const at = (index: number): number => held[index] ?? 0

  if (!(yield* fetchTo(CC_BYTES)) || at(0) !== MAGIC) return null
  size = CC_BYTES + at(2) * 8
  for (let from = CC_BYTES; ;) {
    if (!(yield* fetchTo(from + 1))) return null
    const tag = at(from++)
    if (tag === TERMINATOR_TLV) return null
    if (tag === NULL_TLV) continue
    if (!(yield* fetchTo(from + 1))) return null
    let length = at(from++)
    if (length === 0xff) {
      if (!(yield* fetchTo(from + 2))) return null
      length = at(from) * 256 + at(from + 1)
      from += 2
    }
    if (length > MAX_NDEF_BYTES || from + length > size) return null
    if (tag === NDEF_TLV)
      return length > 0 && (yield* fetchTo(from + length)) ? Uint8Array.from(held.slice(from, from + length)) : null
    from += length
  }
}

/** Reads the message of a Type 2 tag; addresses are pages. */
export function readType2(): NdefRead {
  return readMessage(TYPE2)
}

/** Reads the message of a Type 5 tag with blocks of 4 bytes and at most 2,040 bytes of data. Addresses count blocks. */
export function readType5(): NdefRead {
  return readMessage(TYPE5)
}

/** NFC Data Exchange Format, read only: URIs and texts of a complete message. */

/** Prefixes of the URI record type (NFC Forum RTD URI 1.0, table 3), by number. */
const URI_PREFIXES = [
  '',
  'http://www.',
  'https://www.',
  'http://',
  'https://',
  'tel:',
  'mailto:',
  'ftp://anonymous:anonymous@',
  'ftp://ftp.',
  'ftps://',
  'sftp://',
  'smb://',
  'nfs://',
  'ftp://',
  'dav://',
  'news:',
  'telnet://',
  'imap:',
  'rtsp://',
  'urn:',
  'pop:',
  'sip:',
  'sips:',
  'tftp:',
  'btspp://',
  'btl2cap://',
  'btgoep://',
  'tcpobex://',
  'irdaobex://',
  'file://',
  'urn:epc:id:',
  'urn:epc:tag:',
  'urn:epc:pat:',
  'urn:epc:raw:',
  'urn:epc:',
  'urn:nfc:',
] as const

const MAX_RECORDS = 16
const WELL_KNOWN = 0x01
const ABSOLUTE_URI = 0x03

interface NdefRecord {
  readonly format: number
  readonly type: string
  readonly payload: Uint8Array
  readonly end: number
  readonly isLast: boolean
}

function recordAt(bytes: Uint8Array, start: number): NdefRecord | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const head = bytes[start]
  const typeLength = bytes[start + 1]
  // Rejects chunked records: receipts and links need none.
  if (head === undefined || typeLength === undefined || (head & 0x20) !== 0) return null
  const isShort = (head & 0x10) !== 0
  if (start + (isShort ? 3 : 6) > bytes.length) return null
  const payloadLength = isShort ? view.getUint8(start + 2) : view.getUint32(start + 2)
  let at = start + (isShort ? 3 : 6)
  const idLength = (head & 0x08) !== 0 ? bytes[at++] : 0
  if (idLength === undefined) return null
  const payloadAt = at + typeLength + idLength
  const end = payloadAt + payloadLength
  if (end > bytes.length) return null
  const type = String.fromCharCode(...bytes.subarray(at, at + typeLength))
  return { format: head & 0x07, type, payload: bytes.subarray(payloadAt, end), end, isLast: (head & 0x40) !== 0 }
}

function decode(encoding: 'utf-8' | 'utf-16be', bytes: Uint8Array): string | null {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes)
  } catch {
    return null
  }
}

function textOf({ format, type, payload }: NdefRecord): string | null {
  // The type of such a record is the URI itself.
  if (format === ABSOLUTE_URI) return type
  const first = payload[0]
  if (format !== WELL_KNOWN || first === undefined) return null
  if (type === 'U') {
    const prefix = URI_PREFIXES[first]
    const rest = decode('utf-8', payload.subarray(1))
    return prefix === undefined || rest === null ? null : prefix + rest
  }
  // A smart poster contains a message: the link, and titles that are no code.
  if (type === 'Sp')
    return recordsIn(payload).flatMap((record) => (record.type === 'U' ? (textOf(record) ?? []) : []))[0] ?? null
  if (type !== 'T') return null
  // Skips the language tag.
  const from = 1 + (first & 0x3f)
  return from > payload.length ? null : decode((first & 0x80) !== 0 ? 'utf-16be' : 'utf-8', payload.subarray(from))
}

function recordsIn(message: Uint8Array): NdefRecord[] {
  const records: NdefRecord[] = []
  let at = 0
  while (records.length < MAX_RECORDS && at < message.length) {
    const record = recordAt(message, at)
    if (!record) break
    records.push(record)
    if (record.isLast) break
    at = record.end
  }
  return records
}

/** The URIs and texts of a message in order. Reads at most 16 records, and skips unreadable records. Never throws. */
export function ndefTexts(message: Uint8Array): string[] {
  return recordsIn(message).flatMap((record) => textOf(record)?.replaceAll(/\p{Cc}/gu, '') || [])
}
