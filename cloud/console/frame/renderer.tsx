import type { Context } from 'hono'
import { raw } from 'hono/html'
import type { Child } from 'hono/jsx'
import type { JSX } from 'hono/jsx/jsx-runtime'
import { newId } from '../../../policy/ids.ts'
import type { Platform } from '../../../policy/platform.ts'
import { ERROR_STATUS, type Failure } from '../../platform/foundation/failure.ts'
import { Frame, noStoreText } from '../components/frame.tsx'
import { Notice } from '../components/notice.tsx'
import { StoreChoice } from '../components/store-choice.tsx'
import { EmptyState } from '../components/card.tsx'
import type { ConsoleSession, ConsolePage, IconName, PageContext, ViewContext } from './page.ts'
import type { ConsoleAssets } from './assets.ts'
import type { FormState } from './form.ts'
import { CONSOLE_HEADERS } from './headers.ts'

/** A page with its data. */
interface LoadedPage {
  readonly at: PageContext
  readonly data: unknown
  readonly form: FormState
  readonly toast: string | undefined
  readonly failure: Failure | undefined
}

/** Draws pages, and the pages that say why there is none. */
export class ConsoleRenderer {
  readonly #pages: readonly ConsolePage[]
  readonly #assets: ConsoleAssets
  readonly #platform: Platform

  constructor(pages: readonly ConsolePage[], assets: ConsoleAssets, platform: Platform) {
    this.#pages = pages
    this.#assets = assets
    this.#platform = platform
  }

  /** A page. After a rejected form, the status is that of the failure. */
  page(c: Context, session: ConsoleSession, page: ConsolePage, loaded: LoadedPage): Response | Promise<Response> {
    const { at, data, form, toast, failure } = loaded
    const { csrfToken } = session
    const view: ViewContext = { ...at, data, form, csrfToken, newKey: () => newId('key', this.#platform) }
    const title = page.title(at.texts)
    const lead = page.lead?.(view)
    const liveHref = liveHrefOf(page, at)
    return send(
      c,
      this.#frame(session, at, { title, lead, toast, liveHref }, withLostForm(view, page.view(view))),
      failure ? ERROR_STATUS[failure.code] : 200,
    )
  }

  /** 403: which roles may open the page, and who changes roles. */
  forbidden(c: Context, session: ConsoleSession, page: ConsolePage, at: PageContext): Response | Promise<Response> {
    const { forbidden } = at.texts.errors
    const names = at.texts.frame.roles
    const roles = page.roles.map((role) => names[role]).join(', ')
    return this.#reason(c, session, at, {
      status: 403,
      icon: 'people',
      ...forbidden,
      text: forbidden.text(names[at.user.role], roles),
    })
  }

  /** 404. */
  notFound(c: Context, session: ConsoleSession, at: PageContext): Response | Promise<Response> {
    return this.#reason(c, session, at, { status: 404, icon: 'info', ...at.texts.errors.notFound })
  }

  /** The user has no store in this mode. */
  noStore(c: Context, session: ConsoleSession, page: ConsolePage, at: PageContext): Response | Promise<Response> {
    const { title } = at.texts.errors.noStore
    const heading = page.title(at.texts)
    return this.#reason(c, session, at, { status: 200, icon: 'store', heading, title, text: noStoreText(at) })
  }

  /** All stores are chosen, and the page shows one. */
  chooseStore(c: Context, session: ConsoleSession, page: ConsolePage, at: PageContext): Response | Promise<Response> {
    const about = { title: page.title(at.texts), lead: at.texts.frame.chooseStoreLead, liveHref: liveHrefOf(page, at) }
    return send(c, this.#frame(session, at, about, <StoreChoice at={at} page={page} />), 200)
  }

  /** A failure of a loader, with the request id that is in the log. */
  problem(
    c: Context,
    session: ConsoleSession,
    at: PageContext,
    failure: Failure,
    requestId: string,
  ): Response | Promise<Response> {
    const { problem, codes, requestNumber } = at.texts.errors
    const status = ERROR_STATUS[failure.code]
    c.header('x-request-id', requestId)
    const aside = (
      <p class="small soft">
        {requestNumber}: <code>{requestId}</code>
      </p>
    )
    const text = failure.code === 'internal' ? `${codes.internal} ${problem.text}` : codes[failure.code]
    return this.#reason(c, session, at, { status, icon: 'warning', title: problem.title, text, aside })
  }

  #reason(
    c: Context,
    session: ConsoleSession,
    at: PageContext,
    reason: { status: number; icon: IconName; heading?: string; title: string; text: string; aside?: Child },
  ): Response | Promise<Response> {
    const { status, icon, heading, title, text, aside } = reason
    const content = (
      <div class="card">
        <EmptyState icon={icon} title={heading === undefined ? text : title}>
          {heading === undefined ? undefined : text}
        </EmptyState>
        <div class="empty">
          {aside}
          <a class="button main" href="/console">
            {at.texts.errors.backToStart}
          </a>
        </div>
      </div>
    )
    return send(c, this.#frame(session, at, { title: heading ?? title }, content), status)
  }

  #frame(
    session: ConsoleSession,
    at: PageContext,
    {
      title,
      lead,
      toast,
      liveHref,
    }: { title: string; lead?: string | undefined; toast?: string | undefined; liveHref?: string | undefined },
    content: Child,
  ): JSX.Element {
    const pages = this.#pages.filter((page) => page.navigation !== undefined && at.has(page.roles))
    const { csrfToken } = session
    return (
      <Frame
        at={at}
        csrfToken={csrfToken}
        assets={this.#assets}
        pages={pages}
        title={title}
        lead={lead}
        toast={toast}
        liveHref={liveHref}
      >
        {content}
      </Frame>
    )
  }
}

/** Adds the reason of a rejected form whose place is gone, for instance because a colleague was faster. */
function withLostForm({ form, texts }: ViewContext, content: Child): Child {
  if (form.message === undefined) return content
  const html = String(<>{content}</>)
  if (html.includes(' data-rejected=""')) return raw(html)
  return (
    <>
      <Notice tone="warn" title={form.title ?? texts.errors.form} isUrgent>
        {form.message}
      </Notice>
      {raw(html)}
    </>
  )
}

function send(c: Context, page: JSX.Element, status: number): Response | Promise<Response> {
  return c.html(`<!doctype html>${String(page)}`, status as 200, CONSOLE_HEADERS)
}

/** Address of the event stream for a page; undefined if the page is not live. */
function liveHrefOf(page: ConsolePage, at: PageContext): string | undefined {
  if (!page.live || page.live.length === 0) return undefined
  const query = { mode: at.mode, store: at.store?.storeId ?? 'all', topics: page.live.join(',') }
  return `/console/live?${new URLSearchParams(query)}`
}
