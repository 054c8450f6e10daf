/** One tag as a reader tells it in JSON, put into one form. */
export interface TagSighting {
  /** Upper-case hex. */
  readonly epc: string
  readonly antenna?: number
  readonly rssiDbm?: number
  /** The reader's stamp, µs since 1970. */
  readonly utcUs?: number
}

/** An EPC has at most 496 bits. */
const MAX_EPC_HEX = 124

/** A JSON object, or null. */
export function objectOf(value: unknown): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null
}

/** Whole 16-bit words of hex in upper case, or null. */
export function epcOfHex(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > MAX_EPC_HEX || !/^(?:[0-9A-Fa-f]{4})+$/.test(value)) return null
  return value.toUpperCase()
}

/** The same from base64 or base64url, or null. */
export function epcOfBase64(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > MAX_EPC_HEX || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(value)) return null
  return epcOfHex(Buffer.from(value, 'base64').toString('hex'))
}

/** A number that is one, also where it is written as text. */
export function numberOf(value: unknown): number | null {
  const number = typeof value === 'string' && /^-?\d{1,16}(?:\.\d{1,16})?$/.test(value.trim()) ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : null
}

/** Antennas are counted from 1; others are not told. */
export function antennaOf(value: unknown): { antenna: number } | Record<string, never> {
  const antenna = numberOf(value)
  return antenna !== null && Number.isInteger(antenna) && antenna >= 1 && antenna <= 65_535 ? { antenna } : {}
}

/** A signal strength that can be one, `perDbm` parts to the dBm. */
export function rssiOf(value: unknown, perDbm = 1): { rssiDbm: number } | Record<string, never> {
  const parts = numberOf(value)
  const rssiDbm = parts === null ? NaN : parts / perDbm
  return rssiDbm >= -200 && rssiDbm <= 50 ? { rssiDbm } : {}
}
