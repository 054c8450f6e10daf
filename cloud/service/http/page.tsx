import type { Child } from 'hono/jsx'
import { raw } from 'hono/html'
import { type Formats, formatsOf, textsOf } from '../../platform/texts/catalogue.ts'
import type { Texts, Problem } from '../../platform/texts/texts.ts'
import type { Context } from 'hono'
import { getCookie, setCookie } from 'hono/cookie'
import type { JSX } from 'hono/jsx/jsx-runtime'
import { prefersHtml, isLanguage, LANGUAGE_COOKIE, otherLanguage, pageLanguage } from '../../../policy/page-language.ts'
import { type ErrorCode, type Failure, ERROR_STATUS } from '../../platform/foundation/failure.ts'
import { STORE_TIME_ZONE } from '../../../policy/store-time-zone.ts'

/** Language context of a page: texts, formats, and the address of the page in the other language. */
export interface PageContext {
  readonly texts: Texts
  readonly formats: Formats
  readonly other: Pick<Texts, 'language' | 'languageName'>
  readonly otherHref: string
}

/** Styles of the cloud's pages: no external requests, light and dark, printable. */
const STYLE = `
:root { color-scheme: light dark; --ink: #16191d; --paper: #fff; --soft: #5b6470; --line: #d9dee5; --accent: #0a5ad6; --ok: #0b6b3a; --stop: #b3261e; --code: #f4f6f8 }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ebef; --paper: #14171a; --soft: #a3adba; --line: #333a43; --accent: #7fb2ff; --ok: #5fd39a; --stop: #ff8a80; --code: #1d2227 } }
* { box-sizing: border-box } body { margin: 0; font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper) }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem; overflow-wrap: anywhere } h1 { font-size: 1.7rem; line-height: 1.2 } h2 { margin-top: 2.5rem; font-size: 1.25rem }
a { color: var(--accent) } .soft { color: var(--soft) } code, pre { font: 14px/1.5 ui-monospace, monospace; background: var(--code); border-radius: 6px }
code { padding: .1em .3em } pre { padding: .8rem 1rem; overflow-x: auto } table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap } .tag { display: inline-block; padding: 0 .5em; border: 1px solid var(--line); border-radius: 999px; font-size: .85rem; color: var(--soft) }
button { font: inherit; min-height: 48px; padding: 0 1.4rem; border-radius: 10px; border: 1px solid var(--line); background: var(--paper); color: var(--ink); cursor: pointer }
button.main { background: var(--accent); border-color: var(--accent); color: var(--paper) } button:focus-visible, a:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px }
form.row { display: flex; gap: .8rem; flex-wrap: wrap } .ribbon { background: #ffd54a; color: #241c00; text-align: center; font-weight: 600; padding: .3rem } details { border-bottom: 1px solid var(--line); padding: .5rem 0 } summary { cursor: pointer }
form.stack { display: grid; gap: .6rem; max-width: 36rem } label { font-weight: 600 } textarea { font: inherit; padding: .6rem; border-radius: 10px; border: 1px solid var(--soft); background: var(--paper); color: var(--ink); width: 100% }
textarea:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px } ol.talk { list-style: none; padding: 0; max-width: 36rem } ol.talk li { padding: .5rem .9rem; margin: .5rem 0; border: 1px solid var(--line); border-radius: 10px; overflow-wrap: anywhere }
ol.talk li.staff { background: var(--code) } ol.talk p { margin: .2rem 0; white-space: pre-wrap }
.stamp { display: inline-block; margin: 0; padding: .1rem .8rem; border: 3px solid var(--stop); border-radius: 8px; color: var(--stop); font-size: 1.5rem; font-weight: 700; text-transform: uppercase } s { color: var(--soft) }
img { max-width: 100%; height: auto; image-rendering: pixelated } img.code { display: block; width: min(100%, 28rem) }
[hidden] { display: none !important } .lost { position: sticky; top: 0; padding: .8rem 1rem; border: 2px solid var(--stop); border-radius: 10px; background: var(--paper) } .is-lost ol.talk { filter: grayscale(1) }
.balance { margin: .2rem 0; font-size: 2rem; font-weight: 700 } progress { display: block; width: 100%; max-width: 26rem; height: 1rem; accent-color: var(--accent) }
@media (max-width: 30rem) { main { padding: 1rem } table.lines tr { display: flex; flex-wrap: wrap; justify-content: flex-end; border-bottom: 1px solid var(--line) }
img.code { width: 100vw; max-width: none; margin: 0 -1rem } table.lines :is(th, td) { border: 0; padding: .2rem 0 } table.lines .n { flex: 0 0 6rem } table.lines :is(td, th):nth-child(2):not([colspan]):not(:last-child) { flex-basis: 4rem } table.lines :is(tbody td, thead th):first-child { flex: 1 0 100% } table.lines th[colspan] { flex: 1 } }
footer { max-width: 60rem; margin: 0 auto; padding: 0 1.5rem 1.5rem } footer a { display: inline-flex; align-items: center; min-height: 44px }
@media (max-width: 30rem) { footer { padding: 0 1rem 1rem } }
@media print { .ribbon, form, footer { display: none } }`

/** The frame of a page that the cloud renders, with the switch to the other language. */
export function Page({
  title,
  reader: { texts, other, otherHref },
  sandbox = false,
  head,
  children,
}: {
  title: string
  reader: PageContext
  sandbox?: boolean
  /** More elements for the head of the page. */
  head?: Child
  children?: Child
}) {
  return (
    <html lang={texts.language}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="robots" content="noindex" />
        <title>{title}</title>
        <link rel="icon" href="/icon.svg" type="image/svg+xml" />
        <style>{raw(STYLE)}</style>
        {head}
      </head>
      <body>
        {sandbox ? <div class="ribbon">Sandbox</div> : null}
        <main>{children}</main>
        <footer>
          <a href={otherHref} lang={other.language} hreflang={other.language}>
            {other.languageName}
          </a>
        </footer>
      </body>
    </html>
  )
}

/** Error page for browsers, instead of JSON: what happened, and what to do. */
function ProblemPage({
  reader,
  problem,
  requestId,
}: {
  reader: PageContext
  problem: Problem
  requestId: string | undefined
}) {
  const { texts } = reader
  const { what, todo } = texts.problems[problem]
  return (
    <Page title={what} reader={reader}>
      <h1>{what}</h1>
      <p>{todo}</p>
      {problem === 'needsKey' ? (
        <p>
          <a href="/docs">{texts.apiReference}</a>
        </p>
      ) : null}
      {requestId === undefined ? null : (
        <p class="soft">
          {texts.requestNumber}: <code>{requestId}</code>
        </p>
      )}
    </Page>
  )
}

type PageStatus = 200 | 400 | 404 | 409 | 429 | 503

/** Renders pages in the reader's language (`policy/page-language.ts`). */
export interface PageRenderer {
  show(
    c: Context,
    page: (reader: PageContext) => JSX.Element,
    status?: PageStatus,
    headers?: Readonly<Record<string, string>>,
  ): Response | Promise<Response>
  /** Renders a page about the failure. `requestId` also appears in the log. */
  problem(c: Context, failure: Failure, requestId?: string, about?: Problem): Response
  /**
   * Renders the page for callers without a key that prefer HTML. Returns undefined for all other callers, who get JSON.
   */
  problemForBrowser(c: Context, failure: Failure, requestId: string): Response | undefined
}

/** Header of all pages of the cloud. An answer without it is of a proxy or a guest network. */
export const UNTAG_PAGE = { 'untag-page': '1' }

/** Headers of pages. Pages load no other files than the icon. The content of a page depends on the request headers in `vary`. */
export const PAGE_HEADERS = {
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  vary: 'Accept, Accept-Language, Cookie',
  ...UNTAG_PAGE,
}

/** Headers of a page that asks its own address for news with htmx. */
export const LIVE_PAGE_HEADERS = {
  ...PAGE_HEADERS,
  'content-security-policy': `${PAGE_HEADERS['content-security-policy']}; script-src 'self'; connect-src 'self'`,
  vary: `${PAGE_HEADERS.vary}, HX-Request`,
}

const PROBLEMS: Readonly<Record<ErrorCode, Problem>> = {
  'invalid-argument': 'rejected',
  unauthenticated: 'needsKey',
  'permission-denied': 'notAllowed',
  'not-found': 'notFound',
  'already-exists': 'rejected',
  'failed-precondition': 'rejected',
  'payload-too-large': 'rejected',
  'unsupported-media-type': 'rejected',
  'resource-exhausted': 'tooFast',
  unavailable: 'unavailable',
  internal: 'internal',
}

/** `isSecure`: true if browsers reach the cloud over HTTPS. */
export function pageRenderer(isSecure: boolean): PageRenderer {
  /** Determines the reader's language. Stores a language from the query in a cookie for this browser session. */
  function readerOf(c: Context): PageContext {
    const requested = c.req.query('lang')
    const remembered = getCookie(c, LANGUAGE_COOKIE)
    const language = pageLanguage({ requested, remembered, accepted: c.req.header('accept-language') })
    if (isLanguage(requested) && requested !== remembered)
      setCookie(c, LANGUAGE_COOKIE, requested, { path: '/', httpOnly: true, sameSite: 'Lax', secure: isSecure })
    const other = textsOf(otherLanguage(language))
    const otherHref = `?${new URLSearchParams({ ...c.req.query(), lang: other.language })}`
    return { texts: textsOf(language), formats: formatsOf(language), other, otherHref }
  }

  function problem(c: Context, failure: Failure, requestId?: string, about = PROBLEMS[failure.code]): Response {
    const { retryAfter } = failure.extras
    if (requestId !== undefined) c.header('x-request-id', requestId)
    if (retryAfter !== undefined) c.header('retry-after', String(retryAfter))
    const reader = readerOf(c)
    const page = String(ProblemPage({ reader, problem: about, requestId }))
    return c.body(`<!doctype html>${page}`, ERROR_STATUS[failure.code], {
      ...PAGE_HEADERS,
      'content-type': 'text/html; charset=utf-8',
    })
  }

  return {
    show: (c, page, status = 200, headers = PAGE_HEADERS) =>
      c.html(`<!doctype html>${String(page(readerOf(c)))}`, status, headers),
    problem,
    problemForBrowser(c, failure, requestId) {
      const isBrowser = prefersHtml(c.req.header('accept')) && c.req.header('authorization') === undefined
      // If the address belongs to the API, a developer opened it, so the page says that a key is needed.
      const isOfApi = failure.code === 'not-found' && c.req.path.startsWith('/api/')
      return isBrowser ? problem(c, failure, requestId, isOfApi ? 'needsKey' : undefined) : undefined
    },
  }
}

/** Address of the script that says when the cloud does not answer (browser/connection.ts). */
export const CONNECTION_SCRIPT = '/assets/connection.js'

/** The script in the head of a page that shows `ConnectionLost`. Such a page needs `LIVE_PAGE_HEADERS`. */
export function ConnectionScript() {
  return <script src={CONNECTION_SCRIPT} defer></script>
}

/** What the page says while the cloud does not answer. `notSent`: what it says about a form. */
export function ConnectionLost({ texts, notSent }: { texts: Texts; notSent?: string }) {
  const t = texts.zone
  return (
    <div id="connection" class="lost" role="alert" hidden data-zone={STORE_TIME_ZONE} data-old={t.old}>
      <strong>{t.lost}</strong> <span data-text></span>{' '}
      <span data-sent="entry" hidden>
        {notSent ?? t.notConfirmed}
      </span>
      <span data-sent="press" hidden>
        {notSent ?? t.pressNotConfirmed}
      </span>
    </div>
  )
}
