import type { Context } from 'hono'
import { getCookie, setCookie } from 'hono/cookie'
import type { JSX } from 'hono/jsx/jsx-runtime'
import { prefersHtml, isLanguage, LANGUAGE_COOKIE, otherLanguage, pageLanguage } from '../../../policy/page-language.ts'
import { type ErrorCode, type Failure, ERROR_STATUS } from '../../platform/foundation/failure.ts'
import { formatsOf, textsOf } from '../../platform/texts/catalogue.ts'
import type { Problem } from '../../platform/texts/texts.ts'
import { type PageContext, Page } from './page.tsx'

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
