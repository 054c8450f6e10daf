/** One range of an `Accept` or `Accept-Language` header. */
interface AcceptRange {
  /** In lower case, without parameters: `text/html`, `de-at`, `*`. */
  readonly value: string
  /** Preference from 0 to 1; 0 means that the client does not accept this value. */
  readonly quality: number
}

/** Longest header that is read, characters. Browsers send less than 300. */
const LENGTH_LIMIT = 1_000
/** RFC 9110 §12.4.2. */
const QUALITY = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/

/** Parses the ranges in the order of the header. Skips ranges with a malformed quality. */
export function acceptRanges(header: string | undefined): AcceptRange[] {
  return (header ?? '')
    .slice(0, LENGTH_LIMIT)
    .toLowerCase()
    .split(',')
    .flatMap((part) => {
      const [value = '', ...parameters] = part.split(';').map((text) => text.trim())
      const quality = parameters.find((text) => text.startsWith('q='))?.slice(2) ?? '1'
      return value === '' || !QUALITY.test(quality) ? [] : [{ value, quality: Number(quality) }]
    })
}

/** True if the client prefers HTML to JSON, as browsers do. API clients accept JSON or any type. */
export function prefersHtml(accept: string | undefined): boolean {
  const ranges = acceptRanges(accept)
  const qualityOf = (type: string) => ranges.find(({ value }) => value === type)?.quality ?? 0
  return qualityOf('text/html') > qualityOf('application/json')
}

/** Languages of the pages of cloud and agent. The first language is the default. */
export const LANGUAGES = ['en', 'de'] as const
export type Language = (typeof LANGUAGES)[number]

/** Cookie with the language that a reader chose with the switch of a page. */
export const LANGUAGE_COOKIE = 'untag_language'

/** Sources of the reader's language. */
interface LanguageSources {
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
