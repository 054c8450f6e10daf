import { withoutControlWords } from '../../../policy/gs1/epc.ts'

const ISO = /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?$/

/** Digits of a fraction of a second; more would exceed the precision of a number. */
const FRACTION_DIGITS = 6

/**
 * Parses a reader's timestamp to µs since 1970. Accepts ISO 8601 with up to nanoseconds and any offset (also `+0100`;
 * default UTC). Also accepts a number of s, ms or µs since 1970; the unit follows from the size of the number. Returns
 * null for other values.
 */
export function utcUsOf(value: unknown): number | null {
  if (typeof value === 'number') return ofCount(value)
  if (typeof value !== 'string' || value.length > 40) return null
  const text = value.trim()
  if (/^\d{9,17}(?:\.\d{1,6})?$/.test(text)) return ofCount(Number(text))
  const parts = ISO.exec(text)
  if (!parts) return null
  const [, year, month, day, hour, minute, second, fraction = '', zone = 'Z'] = parts
  const ms = Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second))
  const date = new Date(ms)
  // Date.UTC also accepts impossible dates, such as the 31st of a month with 30 days.
  if (Number.isNaN(ms) || date.getUTCDate() !== Number(day) || date.getUTCHours() !== Number(hour)) return null
  const us = Number(fraction.slice(0, FRACTION_DIGITS).padEnd(FRACTION_DIGITS, '0'))
  return ms * 1_000 + us - offsetUs(zone)
}

function offsetUs(zone: string): number {
  if (zone === 'Z') return 0
  const minutes = Number(zone.slice(1, 3)) * 60 + Number(zone.slice(-2))
  return (zone.startsWith('-') ? -minutes : minutes) * 60_000_000
}

/** Accepts the years 2001 to 2286 in each unit. */
function ofCount(count: number): number | null {
  if (count >= 1e9 && count < 1e10) return Math.round(count * 1e6)
  if (count >= 1e12 && count < 1e13) return Math.round(count * 1e3)
  return count >= 1e15 && count < 1e16 ? Math.round(count) : null
}

/** One read of one tag, converted from a reader's JSON. */
export interface TagSighting {
  /** Upper-case hex. */
  readonly epc: string
  readonly antenna?: number
  readonly rssiDbm?: number
  /** The reader's timestamp, µs since 1970. */
  readonly utcUs?: number
}

/** Maximum length of an EPC, hex digits: 496 bits. */
const MAX_EPC_HEX = 124

/** The value if it is a JSON object, else null. */
export function objectOf(value: unknown): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null
}

/** The EPC in upper case, without control words, if the value is hex of whole 16-bit words, else null. */
export function epcOfHex(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > MAX_EPC_HEX || !/^(?:[0-9A-Fa-f]{4})+$/.test(value)) return null
  return withoutControlWords(value.toUpperCase())
}

/** The EPC of base64 or base64url as upper-case hex, else null. */
export function epcOfBase64(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > MAX_EPC_HEX || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(value)) return null
  return epcOfHex(Buffer.from(value, 'base64').toString('hex'))
}

/** The value as a number, if it is a number or a decimal text; else null. */
function numberOf(value: unknown): number | null {
  const number = typeof value === 'string' && /^-?\d{1,16}(?:\.\d{1,16})?$/.test(value.trim()) ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : null
}

/** The antenna, 1 to 65,535; empty if the value is no antenna number. */
export function antennaOf(value: unknown): { antenna: number } | Record<string, never> {
  const antenna = numberOf(value)
  return antenna !== null && Number.isInteger(antenna) && antenna >= 1 && antenna <= 65_535 ? { antenna } : {}
}

/** The signal in dBm; `perDbm` is the number of units per dBm. Empty if the signal is implausible. */
export function rssiOf(value: unknown, perDbm = 1): { rssiDbm: number } | Record<string, never> {
  const parts = numberOf(value)
  const rssiDbm = parts === null ? NaN : parts / perDbm
  return rssiDbm >= -200 && rssiDbm <= 50 ? { rssiDbm } : {}
}
