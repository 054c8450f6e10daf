import { withoutControlWords } from '../../../policy/gs1/epc.ts'

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
export function numberOf(value: unknown): number | null {
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
