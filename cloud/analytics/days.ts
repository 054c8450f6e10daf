import { assert } from '../../policy/assert.ts'

/** Days of a store: dates such as `2026-11-20` in its time zone, which is fixed for now. */
export const STORE_TIME_ZONE = 'Europe/Berlin'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** Swedish writes dates as ISO 8601 does. */
const inZone = new Intl.DateTimeFormat('sv-SE', { timeZone: STORE_TIME_ZONE, dateStyle: 'short' })

/** The day that a moment (ms since 1970) belongs to. */
export function dayOf(ms: number): string {
  return inZone.format(ms)
}

/** The first moment of a day, ms since 1970. */
export function startOfDay(day: string): number {
  const utc = Date.parse(`${day}T00:00:00Z`)
  // Central Europe is one or two hours ahead, and never changes its clocks at midnight.
  const start = [utc - 2 * HOUR_MS, utc - HOUR_MS].find((ms) => dayOf(ms) === day && dayOf(ms - 1) !== day)
  assert(start !== undefined, `no beginning of ${day}`)
  return start
}

/** The day that comes `days` days later; earlier, when below 0. */
export function addDays(day: string, days: number): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + days * DAY_MS).toISOString().slice(0, 10)
}

/** Whole days from one day to another. */
export function daysBetween(from: string, to: string): number {
  return (Date.parse(to) - Date.parse(from)) / DAY_MS
}

export const PERIODS = ['daily', 'weekly', 'monthly'] as const
export type Period = (typeof PERIODS)[number]

/** The first day of the period that a day is in: itself, its Monday, or the first of its month. */
export function periodOf(day: string, period: Period): string {
  if (period === 'daily') return day
  if (period === 'monthly') return `${day.slice(0, 8)}01`
  return addDays(day, -((new Date(day).getUTCDay() + 6) % 7))
}
