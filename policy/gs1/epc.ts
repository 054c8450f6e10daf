import { escapeSerial, isNumericSerial, unescapeSerial } from './serial.ts'
import { decodeSgtin, encodeSgtin, type SgtinScheme } from './sgtin.ts'

/** The EPC memory of a UHF tag as we keep and compare it, and the item that it names where it is an SGTIN. */
export interface ParsedEpc {
  /** Upper case, whole 16-bit words. */
  readonly hex: string
  readonly scheme: SgtinScheme | 'other'
  /** Only of an SGTIN: its GTIN-14. */
  readonly gtin14?: string
  /** Only of an SGTIN: its serial number, unescaped. */
  readonly serial?: string
}

/** 31 words: the length field of a Gen2 tag's PC word has 5 bits. No URI that we read is longer. */
const MAX_LENGTH = 124
const URI = /^urn:epc:(?:tag:(sgtin-96|sgtin-198):([0-7])\.|id:sgtin:)(\d{6,12})\.(\d{1,7})\.(.+)$/

/**
 * Reads an EPC given as hex (4–124 digits in either case, whole 16-bit words, nothing between them), as
 * an SGTIN tag URI `urn:epc:tag:sgtin-96:F.CP.IR.S` or `…sgtin-198:…`, or as a pure identity
 * `urn:epc:id:sgtin:CP.IR.S`, which says neither filter nor size: filter 1 (point of sale) is taken and
 * 96 bits where the serial fits them. Undefined for anything else.
 *
 * Hex with another header is `other`, and so is hex that begins like an SGTIN without being one (cut
 * off, too long, a field out of range): proprietary tags may start with any byte, and such a tag is
 * still one tag. It then names no product.
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

/** The tag URI of an SGTIN given as hex, or undefined when the hex is none. */
export function epcUri(hex: string): string | undefined {
  const decoded = decodeSgtin(hex)
  if (!decoded.ok) return undefined
  const { scheme, filter, companyPrefix, itemReference, serial } = decoded.sgtin
  return `urn:epc:tag:${scheme}:${filter}.${companyPrefix}.${itemReference}.${escapeSerial(serial)}`
}

/** Tested before it is made upper case, as `ﬀ` turns into FF. */
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
