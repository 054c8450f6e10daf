import { assert } from '../../../policy/assert.ts'
import { STORE_TIME_ZONE } from '../../../policy/store-time-zone.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** The Swedish date format is ISO 8601. */
const inZone = new Intl.DateTimeFormat('sv-SE', { timeZone: STORE_TIME_ZONE, dateStyle: 'short' })

/** Day of a time, ms since 1970. */
export function dayOf(ms: number): string {
  return inZone.format(ms)
}

/** Start of a day, ms since 1970. */
export function startOfDay(day: string): number {
  const utc = Date.parse(`${day}T00:00:00Z`)
  // Central Europe is one or two hours ahead of UTC and never changes its clocks at midnight.
  const start = [utc - 2 * HOUR_MS, utc - HOUR_MS].find((ms) => dayOf(ms) === day && dayOf(ms - 1) !== day)
  assert(start !== undefined, `no beginning of ${day}`)
  return start
}

/** Adds days to a date; `days` may be negative. */
export function addDays(day: string, days: number): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + days * DAY_MS).toISOString().slice(0, 10)
}

/** Whole days between two dates. */
export function daysBetween(from: string, to: string): number {
  return (Date.parse(to) - Date.parse(from)) / DAY_MS
}

export const PERIODS = ['daily', 'weekly', 'monthly'] as const
export type Period = (typeof PERIODS)[number]

/** First day of the period that contains a day: the day itself, its Monday, or the first of its month. */
export function periodOf(day: string, period: Period): string {
  if (period === 'daily') return day
  if (period === 'monthly') return `${day.slice(0, 8)}01`
  return addDays(day, -((new Date(day).getUTCDay() + 6) % 7))
}
