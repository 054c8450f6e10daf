import { beginsAsElementString, parseElementString } from './element-string.ts'
import { type ScannedItem, itemOf } from './gs1-fields.ts'
import { expandUpcE, hasValidCheckDigit, toGtin14 } from './gtin.ts'
import { splitSymbology, type Symbology } from './symbology.ts'

/** Maximum length of a scanned link, characters. */
const MAX_LENGTH = 500
const LINK =
  /^https?:\/\/[^/?#]+(?:\/[^?#]*?)?\/(?:01|gtin)\/(\d{8}|\d{12,14})((?:\/[^/?#]+\/[^/?#]+){0,3})\/?(?:\?([^#]*))?(?:#.*)?$/i

/** Older keys of GS1 Digital Link, in words. */
const OLDER_KEYS: Readonly<Record<string, string>> = { lot: '10', exp: '17', ser: '21' }

/**
 * Parses a GS1 Digital Link with a GTIN on any host: `https://id.gs1.org/01/09506000134352/21/ABC?17=…` (GS1 Digital
 * Link URI Syntax 1.4). Accepts the older keys `gtin`, `lot`, `exp` and `ser`. Undefined for any other text, also for
 * the compressed form, whose GTIN is not readable.
 */
export function parseDigitalLink(text: string): ScannedItem | undefined {
  if (text.length > MAX_LENGTH) return undefined
  const [, gtin = '', path = '', query = ''] = LINK.exec(text) ?? []
  const gtin14 = hasValidCheckDigit(gtin) ? toGtin14(gtin) : undefined
  if (gtin14 === undefined) return undefined
  const fields = new Map<string, string>()
  const steps = path.split('/').slice(1)
  for (let i = 0; i + 1 < steps.length; i += 2) addField(fields, steps[i], steps[i + 1])
  for (const pair of query.split(/[&;]/)) addField(fields, ...(pair.split('=', 2) as [string, string?]))
  return itemOf(gtin14, fields)
}

function addField(fields: Map<string, string>, key = '', escaped = ''): void {
  const identifier = OLDER_KEYS[key.toLowerCase()] ?? key
  const value = unescaped(escaped)
  if (value !== undefined && !fields.has(identifier)) fields.set(identifier, value)
}

function unescaped(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** What a text says about a product, and about the unit if a 2D code was read. */
interface ProductCode extends ScannedItem {
  /** The UPC-A of eight digits that begin with 1, which may also be a UPC-E. Applies if it is the only product. */
  readonly otherGtin14?: string
  /**
   * True if a scanner sends such a text. False for a wrong check digit, and for what people and spreadsheets make of a
   * code: spaces, hyphens, `.0`, dropped zeros.
   */
  readonly isExact: boolean
}

/** Why a text is no product code. */
export type CodeFault = 'not_a_code' | 'check_digit' | 'rounded' | 'isbn_10' | 'web_address'

type ReadProductCode =
  | { readonly ok: true; readonly code: ProductCode }
  | { readonly ok: false; readonly fault: CodeFault }

/** Maximum length of a product code, characters. Digital Links are the longest. */
const CODE_LIMIT = 500
/** Spaces, hyphens and the apostrophe by which spreadsheets mark a text. */
const SEPARATORS = /[\s'\u00ad\u200b\u2010-\u2015\u2212-]/g

/**
 * Reads a product code from what a scanner sent, a person typed or a spreadsheet stored. This is the only reading of
 * product codes; ADR catalogue lists its rules.
 *
 *     ]E0 4006381333931 ─┐
 *     (01)04006381333931 ├─▶ AIM prefix ─▶ digits ─▶ Digital Link ─▶ element string ─▶ digits without separators
 *     978-3-16-148410-0 ─┘
 *
 * `reported` is the symbology that the scanner reported apart from the text. Only 8 or 13 digits without a leading zero
 * may have a wrong check digit, because shops print their own codes.
 */
export function readProductCode(scanned: string, reported?: Symbology): ReadProductCode {
  if (scanned.length > CODE_LIMIT) return refuse('not_a_code')
  const { text, symbology = reported } = splitSymbology(scanned.trim())
  const fields = symbology?.startsWith('gs1-') ? parseElementString(text) : undefined
  if (fields) return { ok: true, code: { ...fields, isExact: true } }
  if (/^\d+$/.test(text)) return readDigits(text, symbology)
  const item = parseDigitalLink(text) ?? parseElementString(text)
  if (item) return { ok: true, code: { ...item, isExact: true } }
  if (/^https?:/i.test(text)) return refuse('web_address')
  return readWritten(text, symbology)
}

/** Digits with separators, or a number of a spreadsheet. The check digit must fit. */
function readWritten(text: string, symbology: Symbology | undefined): ReadProductCode {
  const [, first = '', decimals = '', exponent = ''] = /^(\d)[.,](\d+)E\+?(\d\d?)$/i.exec(text) ?? []
  if (exponent !== '' && decimals.length !== Number(exponent)) return refuse('rounded')
  const digits = exponent === '' ? text.replaceAll(SEPARATORS, '').replace(/[.,]0+$/, '') : first + decimals
  const read = /^\d+$/.test(digits) ? readDigits(digits, symbology) : refuse('not_a_code')
  if (!read.ok) return read
  const { gtin14, otherGtin14 } = read.code
  if (!hasValidCheckDigit(gtin14)) return otherGtin14 === undefined ? refuse('check_digit') : sure(otherGtin14, false)
  return { ok: true, code: { ...read.code, isExact: false } }
}

function readDigits(digits: string, symbology: Symbology | undefined): ReadProductCode {
  if (digits.length === 8) return readEight(digits, symbology)
  const length = digits.length
  if (length === 7) return mended(readEight(`0${digits}`, symbology))
  if (length === 10 && isIsbn10(digits)) return refuse('isbn_10')
  if (length >= 9 && length <= 11) return mended(readGtin(digits.padStart(12, '0')))
  if (length <= 14) return readGtin(digits)
  // Books and magazines have an add-on code of 2 or 5 digits. UPC-A is without conversion to EAN-13.
  const [, ean = ''] = /^(\d{13}|\d{12}(?=\d{5}$))(?:\d{2}|\d{5})$/.exec(digits) ?? []
  if (hasValidCheckDigit(ean)) return readGtin(ean)
  const item = parseElementString(digits)
  if (item) return { ok: true, code: { ...item, isExact: true } }
  return refuse(beginsAsElementString(digits) ? 'check_digit' : 'not_a_code')
}

/** 12 to 14 digits. */
function readGtin(digits: string): ReadProductCode {
  const gtin14 = digits.length < 12 ? undefined : toGtin14(digits)
  if (gtin14 === undefined) return refuse('not_a_code')
  if (hasValidCheckDigit(digits)) return sure(gtin14)
  return /^[1-9]\d{12}$/.test(digits) ? sure(gtin14, false) : refuse('check_digit')
}

/**
 * Eight digits: a UPC-E if they begin with 0 or if the scanner reports an EAN-13 or UPC, else an EAN-8. A UPC-E has the
 * check digit of its UPC-A.
 */
function readEight(digits: string, symbology: Symbology | undefined): ReadProductCode {
  const upcA = symbology === 'ean-8' ? undefined : expandUpcE(digits)
  const ean8 = digits.padStart(14, '0')
  if (upcA !== undefined && (digits.startsWith('0') || symbology === 'ean-13')) return sure(upcA.padStart(14, '0'))
  const isValid = hasValidCheckDigit(digits)
  if (!isValid && digits.startsWith('0')) return refuse('check_digit')
  const other = upcA === undefined ? {} : { otherGtin14: upcA.padStart(14, '0') }
  return { ok: true, code: { gtin14: ean8, ...other, isExact: isValid || upcA !== undefined } }
}

/** ISBNs of ten digits have another check digit than the EAN of the same book. */
function isIsbn10(digits: string): boolean {
  let sum = 0
  for (let i = 0; i < 10; i++) sum += Number(digits[i]) * (10 - i)
  return sum % 11 === 0
}

/** A spreadsheet dropped the leading zeros. */
function mended(read: ReadProductCode): ReadProductCode {
  return read.ok ? { ok: true, code: { ...read.code, isExact: false } } : read
}

function sure(gtin14: string, isExact = true): ReadProductCode {
  return { ok: true, code: { gtin14, isExact } }
}

function refuse(fault: CodeFault): ReadProductCode {
  return { ok: false, fault }
}
