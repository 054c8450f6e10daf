import { itemOf, type ScannedItem } from './gs1-fields.ts'
import { hasValidCheckDigit } from './gtin.ts'

/** FNC1 as scanners send it: ends a field of variable length. */
const GS = '\u001d'
/** What scanners send instead of GS if they are set so. None of it occurs in a value (GS1 set 82). */
const SUBSTITUTES = /\u241d|[|^~]|[{[](?:GS|FNC1)[\]}]|<(?:GS|FNC1)>/gi
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
 * brackets, with GS (1D) or a substitute after fields of variable length. Also parses the printed form with brackets,
 * and the GTIN alone of a string without GS whose fields cannot be separated. Undefined if no GTIN has a valid check
 * digit.
 */
export function parseElementString(scanned: string): ScannedItem | undefined {
  if (scanned.length > MAX_LENGTH) return undefined
  const separated = scanned.replaceAll(SUBSTITUTES, GS)
  // The printed form marks each identifier with brackets.
  const text = /^\(\d{2,4}\)/.test(separated) ? separated.replaceAll(/\s*\((\d{2,4})\)\s*/g, `${GS}$1`) : separated
  return parseFields(text) ?? leadingGtin(text)
}

/** True for a text that begins as an element string with a GTIN does, even if it was misread. */
export function beginsAsElementString(text: string): boolean {
  return /^0[12]\d{14}/.test(text)
}

/**
 * The GTIN at the start of a text whose other fields cannot be parsed: the scanner drops FNC1, or the rest was cut off.
 */
function leadingGtin(text: string): ScannedItem | undefined {
  const [, gtin14 = '', next = ''] = /^\u001d?01(\d{14})(?:\u001d?(\d{2}).)/.exec(text) ?? []
  const isField = VARIABLE_LIMITS[next] !== undefined || FIXED_LENGTHS[next] !== undefined || LONG_IDENTIFIER.test(next)
  return isField && hasValidCheckDigit(gtin14) ? { gtin14 } : undefined
}

function parseFields(text: string): ScannedItem | undefined {
  const fields = new Map<string, string>()
  let at = text.startsWith(GS) ? 1 : 0
  while (at < text.length) {
    const end = fieldEnd(text, at)
    if (end === undefined) return undefined
    fields.set(text.slice(at, at + 2), text.slice(at + 2, end))
    at = text[end] === GS ? end + 1 : end
  }
  const gtin14 = fields.get('01')
  return gtin14 !== undefined && hasValidCheckDigit(gtin14) ? itemOf(gtin14, fields) : undefined
}
