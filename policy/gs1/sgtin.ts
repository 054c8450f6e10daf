import { checkDigit, hasValidCheckDigit } from './gtin.ts'

/**
 * Serial number of an item (GS1 application identifier 21): 1–20 characters of character set 82 (GS1 General
 * Specifications §7.11). EPC URIs escape seven of these characters (TDS annex A).
 */

/** True if `text` is a valid serial number. */
export function isSerial(text: string): boolean {
  return /^[!"%-?A-Z_a-z]{1,20}$/.test(text)
}

/** True if an SGTIN-96 can store `text`: a number up to 2³⁸ − 1 without leading zeros. */
export function isNumericSerial(text: string): boolean {
  return /^(?:0|[1-9]\d{0,11})$/.test(text) && Number(text) < 2 ** 38
}

/** Escapes a serial for an EPC URI. */
export function escapeSerial(serial: string): string {
  return serial.replace(/["%&/<>?]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}

/**
 * Unescapes a serial of an EPC URI; does not check its length. Accepts only the forms of TDS annex A, for example no
 * bare `/` and no `%41` for A. Escapes may be upper or lower case.
 */
export function unescapeSerial(text: string): string | undefined {
  if (!/^(?:[!'-.0-;=A-Z_a-z]|%(?:2[256Ff]|3[CEFcef]))+$/.test(text)) return undefined
  return text.replace(/%(..)/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}

/**
 * Serialised GTIN in the EPC memory of a tag (GS1 EPC Tag Data Standard, coding tables), most significant bit first:
 *
 *     header 8 | filter 3 | partition 3 | company prefix 20–40 + item reference 24–4 = 44 | serial 38 or 140
 *
 * SGTIN-198 fills 13 words of 16 bits; the last 10 bits are zero. Decoding accepts exactly what encoding writes.
 */
export type SgtinScheme = 'sgtin-96' | 'sgtin-198'

/** An SGTIN. Digits are text, because leading zeros are significant. */
export interface Sgtin {
  readonly scheme: SgtinScheme
  /** 0–7; 1 is an item for the point of sale. */
  readonly filter: number
  /** 6–12 digits. */
  readonly companyPrefix: string
  /**
   * Indicator digit (0, or another digit for a case of goods) and item number. Company prefix and item reference
   * together have 13 digits.
   */
  readonly itemReference: string
  /** sgtin-96: a number below 2³⁸ without leading zeros; sgtin-198: 1–20 characters of GS1 set 82. */
  readonly serial: string
}

/** The invalid field. `length` and `padding` refer to the whole EPC. */
type SgtinErrorCode =
  | 'not_hex'
  | 'header'
  | 'length'
  | 'filter'
  | 'partition'
  | 'company_prefix'
  | 'item_reference'
  | 'serial'
  | 'padding'
type SgtinRefusal = { readonly ok: false; readonly reason: SgtinErrorCode }
type DecodedSgtin = { readonly ok: true; readonly sgtin: Sgtin & { readonly gtin14: string } }
type EncodedSgtin = { readonly ok: true; readonly hex: string }

const HEADER: Record<SgtinScheme, bigint> = { 'sgtin-96': 0x30n, 'sgtin-198': 0x36n }
const HEX_LENGTH: Record<SgtinScheme, number> = { 'sgtin-96': 24, 'sgtin-198': 52 }
/**
 * Number of bits of the company prefix, by partition. The company prefix has 12 − partition digits. Partition 7 does
 * not exist.
 */
const COMPANY_PREFIX_BITS = [40, 37, 34, 30, 27, 24, 20]
const SERIAL_AT = 58
/** 2⁰ … 2⁴⁷. A table, because `**` with a variable exponent takes a third of the decoding time. */
const POWERS_OF_2 = Array.from({ length: 48 }, (_, exponent) => 2 ** exponent)
const MAX_SERIAL_CHARS = 20

/** Decodes an SGTIN from the hex of the EPC memory (either case), with its GTIN-14. */
export function decodeSgtin(hex: string): DecodedSgtin | SgtinRefusal {
  if (hex.length > HEX_LENGTH['sgtin-198']) return refuse('length')
  if (!/^[0-9A-Fa-f]+$/.test(hex)) return refuse('not_hex')
  const scheme = hex.startsWith('30') ? 'sgtin-96' : hex.startsWith('36') ? 'sgtin-198' : undefined
  if (scheme === undefined) return refuse('header')
  if (hex.length !== HEX_LENGTH[scheme]) return refuse('length')

  const partition = readBits(hex, 11, 3)
  const prefixBits = COMPANY_PREFIX_BITS[partition]
  if (prefixBits === undefined) return refuse('partition')
  const companyPrefix = String(readBits(hex, 14, prefixBits)).padStart(12 - partition, '0')
  if (companyPrefix.length > 12 - partition) return refuse('company_prefix')
  const itemReference = String(readBits(hex, 14 + prefixBits, 44 - prefixBits)).padStart(partition + 1, '0')
  if (itemReference.length > partition + 1) return refuse('item_reference')

  const serial = scheme === 'sgtin-96' ? String(readBits(hex, SERIAL_AT, 38)) : readText(hex)
  if (serial === undefined || !isSerial(serial)) return refuse('serial')
  if (scheme === 'sgtin-198' && readBits(hex, 198, 10) !== 0) return refuse('padding')
  const gtin14 = gtin14Of(companyPrefix, itemReference)
  return { ok: true, sgtin: { scheme, filter: readBits(hex, 8, 3), companyPrefix, itemReference, serial, gtin14 } }
}

/** Encodes an SGTIN as upper-case hex: 24 digits for sgtin-96, 52 for sgtin-198. */
export function encodeSgtin({
  scheme,
  filter,
  companyPrefix,
  itemReference,
  serial,
}: Sgtin): EncodedSgtin | SgtinRefusal {
  if (!Number.isInteger(filter) || filter < 0 || filter > 7) return refuse('filter')
  if (!/^\d{6,12}$/.test(companyPrefix)) return refuse('company_prefix')
  const partition = 12 - companyPrefix.length
  if (!/^\d+$/.test(itemReference) || itemReference.length !== partition + 1) return refuse('item_reference')
  if (scheme === 'sgtin-96' ? !isNumericSerial(serial) : !isSerial(serial)) return refuse('serial')

  const itemBits = 44 - (COMPANY_PREFIX_BITS[partition] ?? 0)
  const head = (HEADER[scheme] << 6n) | BigInt((filter << 3) | partition)
  const item = (head << 44n) | (BigInt(companyPrefix) << BigInt(itemBits)) | BigInt(itemReference)
  const bits = scheme === 'sgtin-96' ? (item << 38n) | BigInt(serial) : ((item << 140n) | textBits(serial)) << 10n
  return { ok: true, hex: bits.toString(16).toUpperCase() }
}

/**
 * Splits a GTIN-14 into company prefix and item reference. `prefixLength` is the number of digits of the owner's
 * company prefix, 6–12, which the GTIN itself does not show. For an EAN-8, `prefixLength` is 8: five zeros and the
 * GS1-8 prefix. Undefined for other lengths. Undefined also for a wrong check digit, because the tag would decode to
 * another product.
 */
export function splitGtin14(
  gtin14: string,
  prefixLength: number,
): Pick<Sgtin, 'companyPrefix' | 'itemReference'> | undefined {
  if (!Number.isInteger(prefixLength) || prefixLength < 6 || prefixLength > 12) return undefined
  if (gtin14.length !== 14 || !hasValidCheckDigit(gtin14)) return undefined
  const end = 1 + prefixLength
  return { companyPrefix: gtin14.slice(1, end), itemReference: gtin14.charAt(0) + gtin14.slice(end, 13) }
}

function gtin14Of(companyPrefix: string, itemReference: string): string {
  const digits = itemReference.charAt(0) + companyPrefix + itemReference.slice(1)
  return digits + checkDigit(digits)
}

/**
 * Reads `count` bits, at most 47. Together with the other bits of the first and last hex digit, the bits fit a double.
 */
function readBits(hex: string, from: number, count: number): number {
  const end = from + count
  const digits = Number.parseInt(hex.slice(from >> 2, (end + 3) >> 2), 16)
  return Math.floor(digits / (1 << (-end & 3))) % (POWERS_OF_2[count] ?? 1)
}

/** 20 characters of 7 bits, zero-terminated. Undefined if another value follows the first zero. */
function readText(hex: string): string | undefined {
  let text = ''
  let ended = false
  for (let quad = 0; quad < MAX_SERIAL_CHARS / 4; quad++) {
    const four = readBits(hex, SERIAL_AT + quad * 28, 28)
    for (let shift = 21; shift >= 0; shift -= 7) {
      const code = (four >> shift) & 127
      if (code === 0) ended = true
      else if (ended) return undefined
      else text += String.fromCharCode(code)
    }
  }
  return text
}

function textBits(serial: string): bigint {
  let bits = 0n
  for (let i = 0; i < MAX_SERIAL_CHARS; i++) bits = (bits << 7n) | BigInt(i < serial.length ? serial.charCodeAt(i) : 0)
  return bits
}

function refuse(reason: SgtinErrorCode): SgtinRefusal {
  return { ok: false, reason }
}
