import type { PageContext } from '../frame/page.ts'

/** Leads to the next page of a list with a cursor, and back to the first. */
export function Pagination({
  at,
  shown,
  total,
  nextCursor,
}: {
  at: PageContext
  shown: number
  total?: number | undefined
  nextCursor?: string | undefined
}) {
  const texts = at.texts.frame
  const hrefWith = (cursor: string | undefined) => {
    const query = new URLSearchParams(at.query)
    query.delete('cursor')
    if (cursor !== undefined) query.set('cursor', cursor)
    return `${at.path}?${query}`
  }
  if (nextCursor === undefined && !at.query.has('cursor')) return null
  return (
    <nav class="pages" aria-label={texts.moreRows}>
      <span class="soft small">
        {total === undefined ? null : texts.shown(at.formats.number(shown), at.formats.number(total))}
      </span>
      <span class="row">
        {at.query.has('cursor') ? (
          <a class="button" href={hrefWith(undefined)}>
            {texts.firstPage}
          </a>
        ) : null}
        {nextCursor === undefined ? null : (
          <a class="button" href={hrefWith(nextCursor)}>
            {texts.moreRows}
          </a>
        )}
      </span>
    </nav>
  )
}
