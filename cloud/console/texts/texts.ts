import { STORE_TIME_ZONE } from '../../../policy/store-time-zone.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Formats of numbers, money and times in one language. */
export interface Formats {
  number(value: number): string
  /** An amount in EUR. */
  money(euros: number): string
  /** A share from 0 to 1, in percent. */
  percent(share: number): string
  /** Day and time. */
  moment(ms: number): string
  /** Day without time. */
  date(ms: number): string
  /** Time of day. */
  clock(ms: number): string
  /** Distance to now in its largest unit, such as “5 minutes ago”. */
  ago(ms: number, nowMs: number): string
  /** A time span in minutes, such as “2 minutes”, or in seconds below one minute. */
  span(ms: number): string
}

/** Makes the formats of a locale. */
export function formats(locale: string): Formats {
  const date = (options: Intl.DateTimeFormatOptions) =>
    new Intl.DateTimeFormat(locale, { ...options, timeZone: STORE_TIME_ZONE })
  const number = new Intl.NumberFormat(locale)
  const money = new Intl.NumberFormat(locale, { style: 'currency', currency: 'EUR' })
  const percent = new Intl.NumberFormat(locale, { style: 'percent', maximumFractionDigits: 1 })
  const moment = date({ dateStyle: 'medium', timeStyle: 'short' })
  const day = date({ dateStyle: 'medium' })
  const clock = date({ timeStyle: 'short' })
  const relative = new Intl.RelativeTimeFormat(locale, { numeric: 'auto' })
  const unit = (name: 'second' | 'minute') =>
    new Intl.NumberFormat(locale, { style: 'unit', unit: name, unitDisplay: 'long' })
  const [seconds, minutes] = [unit('second'), unit('minute')]
  return {
    span: (ms) => (ms < MINUTE ? seconds.format(Math.round(ms / 1_000)) : minutes.format(Math.floor(ms / MINUTE))),
    number: (value) => number.format(value),
    money: (euros) => money.format(euros),
    percent: (share) => percent.format(share),
    moment: (ms) => moment.format(ms),
    date: (ms) => day.format(ms),
    clock: (ms) => clock.format(ms),
    ago(ms, nowMs) {
      const past = Math.max(0, nowMs - ms)
      if (past < MINUTE) return relative.format(0, 'second')
      if (past < HOUR) return relative.format(-Math.floor(past / MINUTE), 'minute')
      if (past < DAY) return relative.format(-Math.floor(past / HOUR), 'hour')
      return relative.format(-Math.floor(past / DAY), 'day')
    },
  }
}

/** Texts of one language: fixed texts, texts with parameters, and groups of texts. */
interface TextTree {
  readonly [key: string]: string | ((...values: never[]) => string) | TextTree
}

/** Texts of one part of the console in both languages. */
export interface Bilingual<T> {
  readonly en: T
  readonly de: T
}

/** Declares texts in both languages. A text that is missing in one language is a type error. */
export function bilingual<T extends TextTree>(both: { en: T; de: NoInfer<T> }): Bilingual<T> {
  return both
}
