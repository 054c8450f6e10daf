/** NFC Data Exchange Format, read only: URIs and texts of a complete message. */

/** Prefixes of the URI record type (NFC Forum RTD URI 1.0, table 3), by number. */
export const URI_PREFIXES = [
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
