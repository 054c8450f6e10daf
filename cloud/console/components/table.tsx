import type { Child } from 'hono/jsx'
import type { PageContext } from '../frame/page.ts'
import type { Formats } from '../texts/texts.ts'
import type { Tone } from './card.tsx'

/**
 * Filters of a list, as a form that changes the query of the page. With scripts each change applies at once; the button
 * is for browsers without.
 */
export function FilterBar({ at, apply, children }: { at: PageContext; apply?: string; children?: Child }) {
  return (
    <form
      class="filters"
      method="get"
      action={at.path}
      role="search"
      hx-get={at.path}
      hx-trigger="change, submit"
      hx-target="#results"
      hx-select="#results"
      hx-swap="outerHTML show:none"
      hx-push-url="true"
    >
      {children}
      <button type="submit" class="button">
        {apply ?? at.texts.frame.apply}
      </button>
    </form>
  )
}

/** The part of a page that its filters replace. */
export function Results({ children }: { children?: Child }) {
  return (
    <div id="results" class="stack">
      {children}
    </div>
  )
}

/** An event of a timeline. */
export interface TimelineEntry {
  readonly atMs: number
  readonly title: Child
  readonly text?: Child
  readonly tone?: Tone
  /** Page of the event. */
  readonly href?: string
}

/** Events with their times, in the order of the list. */
export function Timeline({ entries, formats }: { entries: readonly TimelineEntry[]; formats: Formats }) {
  return (
    <ol class="timeline">
      {entries.map(({ atMs, title, text, tone = 'plain', href }) => (
        <li class={tone}>
          <div>
            <strong>{href === undefined ? title : <a href={href}>{title}</a>}</strong>{' '}
            <Moment ms={atMs} text={formats.moment(atMs)} />
            {text === undefined ? null : <div class="soft">{text}</div>}
          </div>
        </li>
      ))}
    </ol>
  )
}

/** A time as text and for programs. */
export function Moment({ ms, text }: { ms: number; text: string }) {
  return <time datetime={new Date(ms).toISOString()}>{text}</time>
}

const ROWS_OF_PAGE = 50

/** The rows of the page that the query names, of a list that is read as a whole. `Pagination` leads on. */
export function rowsOfPage<R>(at: PageContext, rows: readonly R[]): { rows: readonly R[]; nextCursor?: string } {
  const cursor = Number(at.query.get('cursor') ?? 0)
  const from = Number.isSafeInteger(cursor) && cursor > 0 && cursor < rows.length ? cursor : 0
  const to = from + ROWS_OF_PAGE
  return { rows: rows.slice(from, to), ...(to < rows.length && { nextCursor: String(to) }) }
}

/** Leads to the next page of a list with a cursor, and back to the first. `name`: of the cursor in the address. */
export function Pagination({
  at,
  shown,
  total,
  nextCursor,
  name = 'cursor',
}: {
  at: PageContext
  shown: number
  total?: number | undefined
  nextCursor?: string | undefined
  name?: string
}) {
  const texts = at.texts.frame
  const hrefWith = (cursor: string | undefined) => {
    const query = new URLSearchParams(at.query)
    query.delete(name)
    if (cursor !== undefined) query.set(name, cursor)
    return `${at.path}?${query}`
  }
  if (nextCursor === undefined && !at.query.has(name)) return null
  return (
    <nav class="pages" aria-label={texts.moreRows}>
      <span class="soft small">
        {total === undefined ? null : texts.shown(at.formats.number(shown), at.formats.number(total))}
      </span>
      <span class="row">
        {at.query.has(name) ? (
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

/** A column of a table. On a phone each row becomes a card, and `label` stands beside the value. */
interface Column<R> {
  readonly label: string
  /** `number`: aligned to the end. `head`: names the row. `actions`: buttons. `prose`: sentences. */
  readonly kind?: 'head' | 'number' | 'actions' | 'prose'
  cell(row: R): Child
}

/** A table. `caption` names it, for screen readers only unless `isCaptionShown`. */
export function Table<R>({
  caption,
  isCaptionShown = false,
  columns,
  rows,
}: {
  caption: string
  isCaptionShown?: boolean
  columns: readonly Column<NoInfer<R>>[]
  rows: readonly R[]
}) {
  return (
    <div class="table-wrap">
      <table class="cards">
        <caption class={isCaptionShown ? 'shown' : 'spoken'}>{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ label, kind }) => (
              <th scope="col" class={kind === 'number' || kind === 'actions' ? 'end' : undefined}>
                {kind === 'actions' ? <span class="spoken">{label}</span> : label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>
              {columns.map((column) =>
                column.kind === 'head' ? (
                  <th scope="row">{column.cell(row)}</th>
                ) : (
                  <td data-label={column.label} class={classOf(column.kind)}>
                    {column.cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function classOf(kind: Column<unknown>['kind']): string | undefined {
  if (kind === 'number') return 'end'
  return kind === 'actions' || kind === 'prose' ? kind : undefined
}

/** Rows with a text on the left and a state or a button on the right. */
export function List({ children }: { children?: Child }) {
  return <ul class="list">{children}</ul>
}
