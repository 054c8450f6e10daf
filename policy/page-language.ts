import { acceptRanges } from './accept-header.ts'

/** Languages of the pages of cloud and agent. The first language is the default. */
export const LANGUAGES = ['en', 'de'] as const
export type Language = (typeof LANGUAGES)[number]

/** Cookie with the language that a reader chose with the switch of a page. */
export const LANGUAGE_COOKIE = 'untag_language'

/** Sources of the reader's language. */
export interface LanguageSources {
  /** Query parameter `lang`, which the switch of a page sets. */
  readonly requested: string | undefined
  /** Value of the cookie. */
  readonly remembered: string | undefined
  /** Setting `language` of an agent. */
  readonly configured?: Language | undefined
  /** Header `Accept-Language`. */
  readonly accepted: string | undefined
}

/**
 *   switch ─▶ cookie ─▶ configuration ─▶ Accept-Language ─▶ English
 *
 * The language of a page, from the first source that names a supported language.
 */
export function pageLanguage({ requested, remembered, configured, accepted }: LanguageSources): Language {
  if (isLanguage(requested)) return requested
  if (isLanguage(remembered)) return remembered
  return configured ?? acceptedLanguage(accepted)
}

/** True if there are pages in this language. */
export function isLanguage(value: string | undefined): value is Language {
  return (LANGUAGES as readonly unknown[]).includes(value)
}

/** The language that the switch of a page offers. */
export function otherLanguage(language: Language): Language {
  return language === 'de' ? 'en' : 'de'
}

/**
 * Returns the accepted language with the highest quality. If several languages have this quality, returns the first.
 * `de-AT` matches `de`.
 */
function acceptedLanguage(header: string | undefined): Language {
  const ranges = acceptRanges(header)
  const weigh = (language: Language) => {
    const own = ranges.filter(({ value }) => value === language || value.startsWith(`${language}-`))
    const wildcard = ranges.filter(({ value }) => value === '*')
    const [best] = (own.length > 0 ? own : wildcard).toSorted((a, b) => b.quality - a.quality)
    return { language, quality: best?.quality ?? 0, position: best?.quality ? ranges.indexOf(best) : ranges.length }
  }
  const [first] = LANGUAGES.map(weigh).toSorted((a, b) => b.quality - a.quality || a.position - b.position)
  return first?.language ?? LANGUAGES[0]
}
