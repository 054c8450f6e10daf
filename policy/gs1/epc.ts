import { escapeSerial, isNumericSerial, unescapeSerial } from './serial.ts'
import { decodeSgtin, encodeSgtin, type SgtinScheme } from './sgtin.ts'

/** EPC memory of a UHF tag, with the GTIN and serial of an SGTIN. */
export interface ParsedEpc {
  /** Upper case, whole 16-bit words. */
  readonly hex: string
  readonly scheme: SgtinScheme | 'other'
  /** GTIN-14 of an SGTIN. */
  readonly gtin14?: string
  /** Serial number of an SGTIN, unescaped; absent for other tags. */
  readonly serial?: string
}

/**
 * Maximum length, hex digits: 31 words, because the length field of a Gen2 PC word has 5 bits. Supported URIs are
 * shorter.
 */
const MAX_LENGTH = 124
const URI = /^urn:epc:(?:tag:(sgtin-96|sgtin-198):([0-7])\.|id:sgtin:)(\d{6,12})\.(\d{1,7})\.(.+)$/

/**
 * Parses an EPC: hex (4–124 digits, whole 16-bit words, no separators), a tag URI `urn:epc:tag:sgtin-96:F.CP.IR.S` or
 * `…sgtin-198:…`, or a pure identity `urn:epc:id:sgtin:CP.IR.S`. A pure identity gets filter 1 (point of sale), and 96
 * bits if the serial fits. Undefined for anything else.
 *
 * Hex that is no valid SGTIN has the scheme `other` and names no product: proprietary tags may start with any byte.
 */
export function parseEpc(text: string): ParsedEpc | undefined {
  if (text.length > MAX_LENGTH) return undefined
  const hex = text.startsWith('urn:') ? hexOfUri(text) : hexOfWords(text)
  if (hex === undefined) return undefined
  const decoded = decodeSgtin(hex)
  if (!decoded.ok) return { hex, scheme: 'other' }
  const { scheme, gtin14, serial } = decoded.sgtin
  return { hex, scheme, gtin14, serial }
}

/** Tag URI of an SGTIN in hex; undefined for other hex. */
export function epcUri(hex: string): string | undefined {
  const decoded = decodeSgtin(hex)
  if (!decoded.ok) return undefined
  const { scheme, filter, companyPrefix, itemReference, serial } = decoded.sgtin
  return `urn:epc:tag:${scheme}:${filter}.${companyPrefix}.${itemReference}.${escapeSerial(serial)}`
}

/** Validates before upper-casing, because the ligature `ﬀ` becomes FF. */
function hexOfWords(text: string): string | undefined {
  return /^(?:[0-9A-Fa-f]{4})+$/.test(text) ? text.toUpperCase() : undefined
}

function hexOfUri(uri: string): string | undefined {
  const match = URI.exec(uri)
  if (match === null) return undefined
  const [, scheme, filter = '1', companyPrefix = '', itemReference = '', escaped = ''] = match
  const serial = unescapeSerial(escaped)
  if (serial === undefined) return undefined
  const encoded = encodeSgtin({
    scheme: (scheme as SgtinScheme | undefined) ?? (isNumericSerial(serial) ? 'sgtin-96' : 'sgtin-198'),
    filter: Number(filter),
    companyPrefix,
    itemReference,
    serial,
  })
  return encoded.ok ? encoded.hex : undefined
}
