import type { DeviceType } from '../../../policy/vocabulary.ts'
import { de } from './de.ts'
import { en } from './en.ts'
import type { Language } from '../../../policy/page-language.ts'
import type { DeviceTypeTexts, Texts } from './texts.ts'

const TEXTS: Record<Language, Texts> = { de, en }

/** Returns the texts in a language. */
export function textsOf(language: Language): Texts {
  return TEXTS[language]
}

/** True if the pages have texts in this language. */
export function isLanguage(value: string | undefined): value is Language {
  return value !== undefined && Object.hasOwn(TEXTS, value)
}

/** Returns the texts for a device type. Unknown types use the texts of a station. */
export function deviceTypeTexts(texts: Texts, deviceType: string | null): DeviceTypeTexts {
  const known = deviceType !== null && Object.hasOwn(texts.deviceTypes, deviceType)
  return known ? texts.deviceTypes[deviceType as DeviceType] : texts.anyDevice
}
