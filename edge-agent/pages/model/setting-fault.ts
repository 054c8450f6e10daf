import type { Texts } from '../texts/texts.ts'

/** A field of a setting, as the page shows it. */
interface SettingInput {
  readonly value: string
  /** Allowed numbers; undefined if the setting is no number with limits. */
  readonly limits: readonly [min: number, max: number] | undefined
}

/** Fault of a field, as a sentence in the language of the page. `message`: fault of the driver, in English. */
export function faultText({ value, limits }: SettingInput, message: string, { setup, language }: Texts): string {
  if (value.trim() === '') return setup.missing
  const number = Number(value.replace(',', '.'))
  if (limits && !(number >= limits[0] && number <= limits[1]))
    return setup.outside(setup.range(String(limits[0]), String(limits[1])))
  return language === 'en' ? sentence(message) : setup.unfit
}

/** Messages of drivers begin with a small letter and have no full stop. */
function sentence(message: string): string {
  const text = message.charAt(0).toUpperCase() + message.slice(1)
  return /[.!?]$/.test(text) ? text : `${text}.`
}
