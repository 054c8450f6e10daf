/** Texts of up to this length are searched only as the whole text of an element. */
const SHORT = 4

/** All fixed texts of a catalogue. For a text with parameters, returns the parts around the parameters. */
export function fragments(catalogue: unknown): string[] {
  if (typeof catalogue === 'string') return [catalogue]
  if (typeof catalogue === 'function')
    return [0, 1, 2].flatMap((n) =>
      String(catalogue(...Array.from({ length: catalogue.length }, () => n)))
        .split(/\d+|undefined/)
        .map((part) => part.replace(/^[^\p{L}]+|[^\p{L}]+$/gu, ''))
        .filter((part) => part.length > 3),
    )
  if (typeof catalogue !== 'object' || catalogue === null) return []
  return Object.entries(catalogue).flatMap(([key, value]) =>
    ['language', 'languageName', 'locale'].includes(key) ? [] : fragments(value),
  )
}

/** All visible and spoken texts of a page, without the language switch and parts that say their language. */
export function textsOfPage(html: string): string[] {
  const body = html
    .replaceAll(/<(style|script)\b[^>]*>[\s\S]*?<\/\1>/g, '')
    .replaceAll(/<(span|div)[^>]*\slang="\w+"[^>]*>[\s\S]*?<\/\1>/g, '')
    .replaceAll(/<a [^>]*hreflang="[^"]*"[^>]*>[^<]*<\/a>/g, '')
  const labels = [...body.matchAll(/(?:aria-label|alt|title|placeholder)="([^"]*)"/g)].map(([, label = '']) => label)
  return [...body.split(/<[^>]*>/), ...labels].map(plain).filter((text) => text !== '')
}

/** Texts of the catalogue `other` on a page of the catalogue `own`. */
export function foreignTexts(html: string, own: unknown, other: unknown): string[] {
  const ours = fragments(own)
  const theirs = [...new Set(fragments(other))]
  const seen = textsOfPage(html)
  const isForeign = (text: string) => !ours.some((each) => each.includes(text))
  return theirs.filter(
    (text) =>
      isForeign(text) &&
      seen.some((line) => (text.length < SHORT ? line === text : line.includes(text) && standsAlone(line, text))),
  )
}

/** True if the text is not part of a longer word. */
function standsAlone(line: string, text: string): boolean {
  const [before = '', after = ''] = [line.slice(0, line.indexOf(text)), line.slice(line.indexOf(text) + text.length)]
  return !/\p{L}$/u.test(before) && !/^\p{L}/u.test(after)
}

function plain(text: string): string {
  const decoded = text.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&lt;', '<')
  return decoded.replaceAll('&gt;', '>').replaceAll('&amp;', '&').replaceAll(/\s+/g, ' ').trim()
}
