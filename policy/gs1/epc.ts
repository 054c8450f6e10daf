import { decodeEpc } from './epc-schemes.ts'
import { itemOf, type ScannedItem } from './gs1-fields.ts'
import { escapeSerial, isNumericSerial, unescapeSerial, decodeSgtin, encodeSgtin, type SgtinScheme } from './sgtin.ts'

/** EPC memory of a UHF tag, with the product data of an SGTIN, SGTIN+ or DSGTIN+. */
interface ParsedEpc extends Partial<ScannedItem> {
  /** Upper case, whole 16-bit words. */
  readonly hex: string
  /** Such as `sgtin-96`, `sgtin+` or `sscc-96`; `other` for tags of no GS1 scheme. */
  readonly scheme: string
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
 * Hex of no GS1 scheme has the scheme `other` and names no product: proprietary tags may start with any byte. Some
 * readers send the protocol control words in front of the EPC; these are left out if that is certain.
 */
export function parseEpc(text: string): ParsedEpc | undefined {
  if (text.length > MAX_LENGTH) return undefined
  const words = text.startsWith('urn:') ? hexOfUri(text) : hexOfWords(text)
  if (words === undefined) return undefined
  const hex = withoutControlWords(words)
  const content = decodeEpc(hex)
  if (!content) return { hex, scheme: 'other' }
  const gtin14 = content.fields.get('01')
  return { hex, scheme: content.scheme, ...(gtin14 !== undefined && itemOf(gtin14, content.fields)) }
}

/**
 * The EPC without the protocol control word (PC) and extended words (XPC) in front of it. They are certain if the text
 * is of no GS1 scheme, the PC announces exactly the words that follow, and these are of a GS1 scheme.
 *
 *     PC 3000 = 6 words, no XPC │ 3036 142C 8C00 8F80 0005 3244
 */
export function withoutControlWords(hex: string): string {
  const words = hex.length / 4
  if (words < 5) return hex
  const control = Number.parseInt(hex.slice(0, 4), 16)
  // Bits 10–14: words of the EPC. Bit 16: an XPC word follows, whose first bit announces another one (Gen2 §6.3.2.1.2).
  const hasXpc = (control & 0x0200) !== 0
  const extended = hasXpc ? ((Number.parseInt(hex.slice(4, 8), 16) & 0x8000) === 0 ? 1 : 2) : 0
  if (control >> 11 !== words - 1 - extended || decodeEpc(hex)) return hex
  const epc = hex.slice(4 + 4 * extended)
  return decodeEpc(epc) ? epc : hex
}

/**
 * True for what the memory of many tags contains before they are programmed: zeros, ones, the factory value of Impinj
 * Monza, or a tag identification (TID, E2…) without serial number.
 */
export function isUnprogrammed(hex: string): boolean {
  return /^(?:0+|F+|300833B2DDD9014000000000|E2[0-9A-F]{6}0+)$/.test(hex)
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
