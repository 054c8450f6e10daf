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
