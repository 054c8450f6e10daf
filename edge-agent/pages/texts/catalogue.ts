import type { DeviceType } from '../../../policy/vocabulary.ts'
import { de } from './de.ts'
import { en } from './en.ts'
import type { Language } from '../../../policy/page-language.ts'
import type { DeviceTypeTexts, Texts } from './texts.ts'

const TEXTS: Record<Language, Texts> = { de, en }

/** The texts in a language. */
export function textsOf(language: Language): Texts {
  return TEXTS[language]
}

/** Whether there are texts in this language. */
export function isLanguage(value: string | undefined): value is Language {
  return value !== undefined && Object.hasOwn(TEXTS, value)
}

/** A device with unknown type gets the texts of a station. */
export function deviceTypeTexts(texts: Texts, deviceType: string | null): DeviceTypeTexts {
  const known = deviceType !== null && Object.hasOwn(texts.deviceTypes, deviceType)
  return known ? texts.deviceTypes[deviceType as DeviceType] : texts.anyDevice
}
