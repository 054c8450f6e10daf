import { STORE_TIME_ZONE } from '../../../policy/store-time-zone.ts'
import type { Language } from '../../../policy/page-language.ts'
import { de } from './de.ts'
import { en } from './en.ts'
import type { Texts } from './texts.ts'

const TEXTS: Readonly<Record<Language, Texts>> = { de, en }

/** The texts of a language. */
export function textsOf(language: Language): Texts {
  return TEXTS[language]
}

/** Formats of numbers and times in a language. */
export interface Formats {
  /** An amount with its currency. */
  money(cents: number): string
  /** Day and time in the time zone of the stores. */
  moment(ms: number): string
  /** Day in the time zone of the stores. */
  day(ms: number): string
  /** A whole number. */
  count(n: number): string
  /** Time of day. */
  clock(ms: number): string
  /** Weight and price per kilogram. */
  weight(grams: number, centsPerKg: number): string
}

const FORMATS: Readonly<Record<Language, Formats>> = { de: formats(de), en: formats(en) }

/** The formats of a language. */
export function formatsOf(language: Language): Formats {
  return FORMATS[language]
}

function formats({ locale }: Texts): Formats {
  const timeZone = STORE_TIME_ZONE
  const euros = new Intl.NumberFormat(locale, { style: 'currency', currency: 'EUR' })
  const moment = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short', timeZone })
  const clock = new Intl.DateTimeFormat(locale, { timeStyle: 'short', timeZone })
  const day = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeZone })
  const whole = new Intl.NumberFormat(locale, { maximumFractionDigits: 0 })
  const decimals = (digits: number) =>
    new Intl.NumberFormat(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits })
  const [kilograms, price] = [decimals(3), decimals(2)]
  return {
    money: (cents) => euros.format(cents / 100),
    moment: (ms) => moment.format(ms),
    day: (ms) => day.format(ms),
    count: (n) => whole.format(n),
    clock: (ms) => clock.format(ms),
    weight: (grams, centsPerKg) => `${kilograms.format(grams / 1_000)} kg x ${price.format(centsPerKg / 100)} EUR/kg`,
  }
}
