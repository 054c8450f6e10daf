import { hasValidCheckDigit, toGtin14 } from './gtin.ts'
import { isSerial } from './serial.ts'

/** GTIN and serial of a scanned GS1 code. */
export interface ScannedItem {
  readonly gtin14: string
  /** Application identifier 21, as printed. */
  readonly serial?: string
}

/** FNC1 as scanners send it: ends a field of variable length. */
const GS = '\u001d'
/** Maximum length of a scanned text, characters. Codes on goods are shorter. */
const MAX_LENGTH = 500

/**
 * Field length after the first two digits of a fixed-length identifier. The length includes further digits of the
 * identifier (GS1 General Specifications, figure 7.8.5-2).
 */
const FIXED_LENGTHS: Readonly<Record<string, number>> = {
  '00': 18,
  '01': 14,
  '02': 14,
  '03': 14,
  '11': 6,
  '12': 6,
  '13': 6,
  '14': 6,
  '15': 6,
  '16': 6,
  '17': 6,
  '18': 6,
  '19': 6,
  '20': 2,
  '31': 8,
  '32': 8,
  '33': 8,
  '34': 8,
  '35': 8,
  '36': 8,
  '41': 14,
}

/** Maximum field length of 2-digit identifiers with variable length. */
const VARIABLE_LIMITS: Readonly<Record<string, number>> = {
  '10': 20,
  '21': 20,
  '22': 20,
  '30': 8,
  '37': 8,
  '90': 30,
  '91': 90,
  '92': 90,
  '93': 90,
  '94': 90,
  '95': 90,
  '96': 90,
  '97': 90,
  '98': 90,
  '99': 90,
}
/** Identifiers of 3 or 4 digits, whose fields end at the next GS. */
const LONG_IDENTIFIER = /^(?:2[345]|39|[478])/
const LONG_LIMIT = 94

function fieldEnd(text: string, at: number): number | undefined {
  const kind = text.slice(at, at + 2)
  const fixed = FIXED_LENGTHS[kind]
  if (fixed !== undefined) {
    const end = at + 2 + fixed
    return end <= text.length && /^\d+$/.test(text.slice(at, end)) ? end : undefined
  }
  const most = VARIABLE_LIMITS[kind] ?? (LONG_IDENTIFIER.test(kind) ? LONG_LIMIT : undefined)
  if (most === undefined) return undefined
  const gs = text.indexOf(GS, at)
  const end = gs < 0 ? text.length : gs
  const length = end - at - 2
  return length >= 1 && length <= most ? end : undefined
}

/**
 * Parses a GS1 element string from GS1-128, GS1 DataMatrix, GS1 QR or DataBar. Scanners send the string without
 * brackets, with GS (1D) after fields of variable length. Undefined if a field is invalid, or if no GTIN has a valid
 * check digit.
 */
export function parseElementString(text: string): ScannedItem | undefined {
  if (text.length > MAX_LENGTH) return undefined
  let gtin: string | undefined
  let serial: string | undefined
  let at = text.startsWith(GS) ? 1 : 0
  while (at < text.length) {
    const end = fieldEnd(text, at)
    if (end === undefined) return undefined
    const kind = text.slice(at, at + 2)
    if (kind === '01') gtin = text.slice(at + 2, end)
    if (kind === '21') serial = text.slice(at + 2, end)
    at = text[end] === GS ? end + 1 : end
  }
  if (gtin === undefined || !hasValidCheckDigit(gtin)) return undefined
  return { gtin14: gtin, ...(serial === undefined ? {} : { serial }) }
}

const DIGITAL_LINK =
  /^https?:\/\/[^/?#]+(?:\/[^?#]*?)?\/(?:01|gtin)\/(\d{8}|\d{12,14})((?:\/[^/?#]+\/[^/?#]+){0,3})\/?(?:[?#].*)?$/i

function unescaped(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/**
 * Parses a GS1 Digital Link with a GTIN on any host: `https://id.gs1.org/01/09506000134352/21/ABC?17=…` (GS1 Digital
 * Link URI Syntax 1.4). Accepts the older keys `gtin` and `ser`. Undefined for any other text.
 */
export function parseDigitalLink(text: string): ScannedItem | undefined {
  if (text.length > MAX_LENGTH) return undefined
  const match = DIGITAL_LINK.exec(text)
  const gtin = match?.[1]
  if (gtin === undefined || !hasValidCheckDigit(gtin)) return undefined
  const gtin14 = toGtin14(gtin)
  const serial = serialIn(match?.[2]?.split('/').slice(1) ?? [])
  return gtin14 === undefined ? undefined : { gtin14, ...(serial === undefined ? {} : { serial }) }
}

/**
 * Finds the serial in a path of alternating keys and values. The search considers only keys, because a value may also
 * be `21`.
 */
function serialIn(path: readonly string[]): string | undefined {
  const at = path.findIndex((key, i) => i % 2 === 0 && /^(?:21|ser)$/i.test(key))
  const serial = at < 0 ? undefined : unescaped(path[at + 1] ?? '')
  return serial !== undefined && isSerial(serial) ? serial : undefined
}
