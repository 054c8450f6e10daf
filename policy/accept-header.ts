/** One range of an `Accept` or `Accept-Language` header. */
export interface AcceptRange {
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
