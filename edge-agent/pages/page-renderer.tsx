import type { Context, MiddlewareHandler } from 'hono'
import { getCookie, setCookie } from 'hono/cookie'
import type { JSX } from 'hono/jsx/jsx-runtime'
import { isTls } from '../http/access.ts'
import { prefersHtml, isLanguage, LANGUAGE_COOKIE, otherLanguage, pageLanguage } from '../../policy/page-language.ts'
import type { Platform } from '../../policy/platform.ts'
import type { AgentConfig } from '../config.ts'
import { type Localization, Frame } from './components/frame.tsx'
import { textsOf } from './texts/catalogue.ts'
import type { Problem } from './texts/texts.ts'
import { createHash } from 'node:crypto'
import { STYLE } from './style/style.ts'

/** Page for browsers instead of a JSON error: what happened, and what to do. */
function ProblemPage({ localization, problem }: { localization: Localization; problem: Problem }) {
  const { texts } = localization
  const { what, todo } = texts.problems[problem]
  return (
    <Frame title={`${what} · untag`} localization={localization} kind="list">
      <main>
        <h1>{what}</h1>
        <p>{todo}</p>
        {problem === 'hostNotAllowed' ? null : (
          <p class="row">
            <a class="button" href="/station">
              {texts.chooseDevice}
            </a>
          </p>
        )}
      </main>
    </Frame>
  )
}

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64')

/**
 * Response headers of a page. The page may run only the script with this nonce and may call only its own agent. The
 * page's script sends the forms, so that codes never appear in an address.
 */
function pageHeaders(nonce: string): Record<string, string> {
  const allowed = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'sha256-${STYLE_HASH}'`,
    "connect-src 'self'",
    "img-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ]
  return {
    'content-security-policy': allowed.join('; '),
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
    vary: 'Accept, Accept-Language, Cookie',
  }
}

/** Sources of the pages' language (`config`) and nonces (`platform`). */
interface PageRendererParts {
  config: Pick<AgentConfig, 'language'>
  platform: Pick<Platform, 'random'>
}

/** Renders pages in the language of the person who reads them (`policy/page-language.ts`). */
interface PageRenderer {
  /**
   * Returns the texts in the reader's language. A cookie stores a chosen language until the browser closes, but not on
   * the screen of a lane (`isOfLane`): there the choice is that of one shopper.
   */
  localize(c: Context, isOfLane?: boolean): Localization
  show(c: Context, page: (nonce: string) => JSX.Element, status?: 200 | 401 | 404): Response | Promise<Response>
}

/** Makes the renderer of this agent's pages. */
export function pageRenderer({ config, platform }: PageRendererParts): PageRenderer {
  return {
    localize(c, isOfLane = false) {
      const requested = c.req.query('lang')
      const remembered = getCookie(c, LANGUAGE_COOKIE)
      const accepted = c.req.header('accept-language')
      const sources = { remembered, configured: config.language, accepted }
      const language = pageLanguage({ requested, ...sources })
      const own = pageLanguage({ requested: undefined, ...sources })
      if (isLanguage(requested) && requested !== remembered && !isOfLane)
        setCookie(c, LANGUAGE_COOKIE, requested, { path: '/', httpOnly: true, sameSite: 'Lax', secure: isTls(c) })
      const { language: lang, languageName } = textsOf(otherLanguage(language))
      const href = `?${new URLSearchParams({ ...c.req.query(), lang })}`
      return { texts: textsOf(language), own, other: { language: lang, languageName, href } }
    },
    show(c, page, status = 200) {
      const nonce = Buffer.from(platform.random.bytes(16)).toString('base64url')
      return c.html(`<!doctype html>${String(page(nonce))}`, status, pageHeaders(nonce))
    },
  }
}

/** Replaces JSON errors with a page for browsers, which accept `text/html`. Programs receive the JSON. */
export function errorPages(agent: PageRendererParts): MiddlewareHandler {
  const renderer = pageRenderer(agent)
  return async (c, next) => {
    await next()
    const isJson = c.res.headers.get('content-type')?.startsWith('application/json') === true
    if (c.res.status < 400 || !isJson || c.req.header('authorization') !== undefined) return
    if (!prefersHtml(c.req.header('accept'))) return
    const { status } = c.res
    const page = String(ProblemPage({ localization: renderer.localize(c), problem: problemOf(status) }))
    // Hono keeps the headers of the error, except the content type.
    c.res = new Response(`<!doctype html>${page}`, {
      status,
      headers: { ...pageHeaders(''), 'content-type': 'text/html; charset=UTF-8' },
    })
  }
}

function problemOf(status: number): Problem {
  if (status === 404) return 'notFound'
  if (status === 403) return 'hostNotAllowed'
  return status === 429 || status >= 500 ? 'unavailable' : 'forPrograms'
}
