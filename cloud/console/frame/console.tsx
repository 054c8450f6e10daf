import type { Context, Hono } from 'hono'
import { newId } from '../../../policy/ids.ts'
import { Failure } from '../../platform/foundation/failure.ts'
import { asFailure } from '../../service/http/as-failure.ts'
import { failureOfBody, type ErrorBody, type Multipart } from '../../platform/operations/validation.ts'
import { announcedSize, readBytes, type TakeRoom } from '../../service/http/body.ts'
import { streamResponse } from '../../service/http/api.ts'
import { isMultipart } from '../../service/http/multipart.ts'
import type { Services } from '../../platform/operations/operation.ts'
import { pages as registered } from '../pages/registry.ts'
import type { ConsoleAccess, ConsoleSession, ConsolePage, PageAction, PageContext, ViewContext } from './page.ts'
import { consoleAssets, type ConsoleAssets } from './assets.ts'
import {
  FRAME_FIELDS,
  isOwnForm,
  NO_FORM,
  parseForm,
  readUpload,
  rejectedForm,
  type FormFields,
  type FormState,
} from './form.ts'
import { asDownload } from './download.ts'
import { CONSOLE_HEADERS } from './headers.ts'
import { contextOf, languageOf } from './context.ts'
import { ConsoleRenderer } from './renderer.tsx'
import { SharedReads } from './shared-reads.ts'
import { asMode, asStore, readPreferences, rememberStore, type Preferences } from './preferences.ts'
import type { Platform } from '../../../policy/platform.ts'
import { hasRole, isOfPlatform, tenantOf, type Mode } from '../../platform/foundation/caller.ts'
import type { ChangeFeed, ChangeFilter } from '../../platform/operations/notifier.ts'
import { getCookie, setCookie } from 'hono/cookie'
import type { ConsoleTexts } from '../texts/catalogue.ts'

const COOKIE = 'untag_toast'

/** Remembers the action that succeeded, for the page that the browser fetches next. */
function setToast(c: Context, page: ConsolePage, action: string, mode: Mode, isSecure: boolean): void {
  setCookie(c, COOKIE, `${page.path} ${action} ${mode}`, cookieOptions(isSecure, 60))
}

/** The message of the action that succeeded last, once. */
function takeToast(
  c: Context,
  pages: readonly ConsolePage[],
  texts: ConsoleTexts,
  isSecure: boolean,
): string | undefined {
  const remembered = getCookie(c, COOKIE)
  if (remembered === undefined) return undefined
  setCookie(c, COOKIE, '', cookieOptions(isSecure, 0))
  const [path, name = '', mode] = remembered.split(' ')
  const actions = pages.find((page) => page.path === path)?.actions ?? {}
  return Object.hasOwn(actions, name) ? actions[name]?.done(texts, asMode(mode) ?? 'test') : undefined
}

function cookieOptions(secure: boolean, maxAge: number) {
  return { path: '/console', httpOnly: true, sameSite: 'Lax', secure, maxAge } as const
}

/** Shortest time between two messages to a page, ms. The first message after a quiet time goes out at once. */
const QUIET_MS = 1_000
/** Time between two comments that keep the connection open through proxies, ms. */
const COMMENT_MS = 20_000
/** Longest time of one stream, ms. The browser then reconnects, so that ended sessions lose their stream. */
const STREAM_MS = 10 * 60_000
/** Maximum number of open streams of one user in a process: some tabs on some devices. */
const STREAMS_OF_USER = 20
const TOPICS_LIMIT = 30

interface LiveParts {
  readonly access: ConsoleAccess
  readonly services: { readonly platform: Platform; readonly changes: ChangeFeed }
}

/**
 * `GET /console/live?mode=…&store=…&topics=…`: server-sent events `changed`, without data. The page then fetches its
 * live parts again. The stream reports only topics of pages that the role opens, in a mode and stores that the user may
 * see. The session is read again before each message. If the session has ended or has other rights, the stream ends.
 * Answers 204 if the user has too many streams: the browser does not reconnect, and the page still reads every 30
 * seconds.
 */
function liveRoute(app: Hono, { access, services }: LiveParts, pages: readonly ConsolePage[]): void {
  const open = new Map<string, number>()
  app.get('/console/live', async (c) => {
    const session = await access.sessionOf(c)
    const filter = session && filterOf(c, session, pages)
    if (!filter) return c.body(null, 204)
    const { userId } = session.user
    const count = open.get(userId) ?? 0
    if (count >= STREAMS_OF_USER) return c.body(null, 204)
    const mayListen = async () => isSameUser(session, await access.sessionOf(c))
    const stream = changeStream(filter, mayListen, services, () => {
      const left = (open.get(userId) ?? 1) - 1
      if (left === 0) open.delete(userId)
      else open.set(userId, left)
    })
    if (!stream) return c.body(null, 204)
    open.set(userId, count + 1)
    return new Response(stream, {
      headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' },
    })
  })
}

/** Changes that the stream reports; undefined if the session may not use the mode. */
function filterOf(c: Context, session: ConsoleSession, pages: readonly ConsolePage[]): ChangeFilter | undefined {
  const { accountId, storeIds: own } = session.user
  const mode = asMode(c.req.query('mode')) ?? session.mode
  if (mode === 'live' && !session.mayUseLive) return undefined
  const storeId = asStore(c.req.query('store'))
  const wanted = new Set((c.req.query('topics') ?? '').split(',').slice(0, TOPICS_LIMIT))
  const allowed = pages.filter(({ roles }) => hasRole(session.caller, roles)).flatMap(({ live }) => live ?? [])
  const isOne = storeId !== undefined && storeId !== 'all'
  return {
    tenant: tenantOf(accountId, mode),
    topics: new Set(allowed.filter((topic) => wanted.has(topic))),
    storeIds: isOne ? new Set([storeId].filter((id) => own?.includes(id) ?? true)) : own && new Set(own),
  }
}

function isSameUser(before: ConsoleSession, now: ConsoleSession | undefined): boolean {
  const rights = ({ user: { userId, role, storeIds }, mayUseLive }: ConsoleSession) =>
    JSON.stringify([userId, role, storeIds, mayUseLive])
  return now !== undefined && rights(now) === rights(before)
}

/** A stream of `changed` messages; undefined if the process has too many listeners. */
function changeStream(
  filter: ChangeFilter,
  mayListen: () => Promise<boolean>,
  { platform, changes }: LiveParts['services'],
  onEnd: () => void,
): ReadableStream<Uint8Array> | undefined {
  const encoder = new TextEncoder()
  const { clock, timers } = platform
  let sink: ReadableStreamDefaultController<Uint8Array> | undefined
  let sentMs = -QUIET_MS
  let isDue = false
  const cancels = new Set<() => void>()

  const after = (ms: number, task: () => void) => {
    const cancel = timers.after(ms, () => {
      cancels.delete(cancel)
      task()
    })
    cancels.add(cancel)
  }
  const write = async (text: string) => {
    if (!(await mayListen().catch(() => false))) return close()
    // Skips a client that does not read: one waiting message has the same effect as many.
    if (sink && (sink.desiredSize ?? 0) > 0) sink.enqueue(encoder.encode(text))
  }
  const send = () => {
    isDue = false
    sentMs = clock.elapsed()
    void write('event: changed\ndata:\n\n')
  }
  const unsubscribe = changes.subscribe(filter, () => {
    if (isDue) return
    isDue = true
    const waitMs = sentMs + QUIET_MS - clock.elapsed()
    if (waitMs <= 0) send()
    else after(waitMs, send)
  })
  if (!unsubscribe) return undefined

  const end = () => {
    if (!cancels.size && !sink) return
    for (const cancel of cancels) cancel()
    cancels.clear()
    sink = undefined
    unsubscribe()
    onEnd()
  }
  const close = () => {
    const ending = sink
    end()
    ending?.close()
  }
  const comment = () => {
    void write(': open\n\n')
    after(COMMENT_MS, comment)
  }
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        sink = controller
        comment()
        after(STREAM_MS, close)
      },
      cancel: end,
    },
    { highWaterMark: 4 },
  )
}

/** Page that sets up the second factor. */
const FACTOR_PAGE = '/console/profile'
/** First page of a person who runs the cloud. */
const PLATFORM_PAGE = '/console/registrations'

/** Maximum size of a form, bytes. */
const FORM_LIMIT = 64 * 1024

/** Parts of the cloud that the console uses. */
interface ConsoleParts {
  readonly access: ConsoleAccess
  readonly services: Pick<Services, 'platform' | 'config' | 'log' | 'changes'>
  readonly takeRoom: TakeRoom
  /** Pages to serve. Default: all of pages/registry.ts. */
  readonly pages?: readonly ConsolePage[]
}

/** Adds the console to the cloud's app: its files, its pages and its event stream. */
export function consoleRoutes(app: Hono, parts: ConsoleParts): void {
  const pages = parts.pages ?? registered
  const assets = consoleAssets()
  const handler = new Console(parts, pages, assets)
  app.get('/console/assets/:build/:name', (c) => {
    const { build, name } = c.req.param()
    return assets.answer(build, name)?.answer(c) ?? c.body('', 404, { 'cache-control': 'no-store' })
  })
  app.get('/console/worker.js', (c) => assets.worker(c.req.query('lang') === 'de' ? 'de' : 'en').answer(c))
  liveRoute(app, parts, pages)
  app.post('/console/sign-out', (c) => handler.signOut(c))
  for (const page of pages) {
    app.get(page.path, (c) => handler.show(c, page))
    app.post(page.path, (c) => handler.act(c, page))
  }
  app.get('/console/', (c) => c.redirect('/console', 308))
  app.all('/console/*', (c) => handler.show(c, undefined))
}

/** A form with a file, if the page takes files, and the role may call the operation of the upload. */
function uploadOf(c: Context, { upload }: ConsolePage, { user }: ConsoleSession): Multipart | undefined {
  return upload && upload.roles.includes(user.role) && isMultipart(c) ? upload.multipart : undefined
}

async function readForm(c: Context, upload: Multipart | undefined): Promise<FormFields> {
  return upload ? readUpload(c, upload) : parseForm(c, await readBytes(c, FORM_LIMIT))
}

function actionOf(page: ConsolePage, form: FormFields): PageAction | undefined {
  const name = form.text(FRAME_FIELDS.action) ?? ''
  return Object.hasOwn(page.actions ?? {}, name) ? page.actions?.[name] : undefined
}

/** Where a person who runs the cloud begins: at the second factor while it is missing, else at the registrations. */
function startFor({ caller }: ConsoleSession, page: ConsolePage | undefined): string | undefined {
  if (!isOfPlatform(caller)) return undefined
  if (!caller.hasSecondFactor) return page && hasRole(caller, page.roles) ? undefined : FACTOR_PAGE
  return page?.path === '/console' ? PLATFORM_PAGE : undefined
}

function withoutStore({ mode }: Preferences): Preferences {
  return { mode, storeId: undefined, from: 'cookie' }
}

class Console {
  readonly #parts: ConsoleParts
  readonly #pages: readonly ConsolePage[]
  readonly #renderer: ConsoleRenderer
  readonly #isSecure: boolean
  readonly #reads: SharedReads

  constructor(parts: ConsoleParts, pages: readonly ConsolePage[], assets: ConsoleAssets) {
    this.#parts = parts
    this.#pages = pages
    this.#reads = new SharedReads(parts.services)
    this.#isSecure = parts.services.config.baseUrl.startsWith('https:')
    this.#renderer = new ConsoleRenderer(pages, assets, parts.services.platform)
  }

  /** Answers a GET. `page` is undefined for unknown addresses. */
  async show(c: Context, page: ConsolePage | undefined): Promise<Response> {
    const session = await this.#parts.access.sessionOf(c)
    if (!session) return this.#signedOut(c)
    const start = startFor(session, page)
    if (start !== undefined) return c.redirect(start, 303)
    this.#parts.access.takePage(session)
    const requestId = newId('req', this.#parts.services.platform)
    const preferences = readPreferences(c, this.#isSecure, session)
    try {
      const at = await this.#contextOf(c, session, page, preferences, requestId)
      rememberStore(c, this.#isSecure, preferences, at.store?.storeId)
      return await this.#render(c, session, page, at, NO_FORM, requestId)
    } catch (error) {
      const failure = this.#logged(error, requestId)
      const at = await this.#contextOf(c, session, page, withoutStore(preferences), requestId)
      return this.#renderer.problem(c, session, at, failure, requestId)
    }
  }

  /** The sign-in page. htmx loads it as a whole page, which says that the session has ended. */
  #signedOut(c: Context): Promise<Response> | Response {
    if (c.req.header('hx-request') !== 'true') return this.#parts.access.signInPage(c)
    const current = c.req.header('hx-current-url') ?? ''
    const { pathname, search } = new URL(URL.canParse(current) ? current : c.req.url)
    const to = encodeURIComponent(`${pathname}${search}`)
    return c.body(null, 200, { ...CONSOLE_HEADERS, 'hx-redirect': `/console/sign-in?to=${to}&ended` })
  }

  /** Answers a POST: calls the operation of the action, then redirects. A rejected form is shown again. */
  async act(c: Context, page: ConsolePage): Promise<Response> {
    const before = await this.#parts.access.sessionOf(c)
    if (!before) return this.#signedOut(c)
    this.#parts.access.takePage(before)
    const upload = uploadOf(c, page, before)
    const taken = this.#takeRoom(before, announcedSize(c, upload?.limit ?? FORM_LIMIT))
    if (taken instanceof Failure) return this.#answerForm(c, page, taken)
    const sent = await readForm(c, upload).catch((error: unknown) => asFailure(error))
    return this.#answerForm(c, page, sent).finally(taken)
  }

  #takeRoom({ user }: ConsoleSession, bytes: number): (() => void) | Failure {
    try {
      return this.#parts.takeRoom(user.accountId, bytes)
    } catch (error) {
      return asFailure(error)
    }
  }

  async #answerForm(c: Context, page: ConsolePage, sent: FormFields | Failure): Promise<Response> {
    // The session may have ended, or may have other rights, since the form was begun.
    const session = await this.#parts.access.sessionOf(c)
    if (!session) return this.#signedOut(c)
    const requestId = newId('req', this.#parts.services.platform)
    const preferences = readPreferences(c, this.#isSecure, session)
    let form: FormFields | undefined
    let at: PageContext | undefined
    try {
      if (sent instanceof Failure) throw sent
      form = sent
      // The form acts on the mode and store that it showed, also if another tab has switched since.
      const shown = {
        mode: asMode(form.text(FRAME_FIELDS.mode)) ?? preferences.mode,
        storeId: asStore(form.text(FRAME_FIELDS.store)),
        from: 'form' as const,
      }
      at = await this.#contextOf(c, session, page, shown, requestId)
      if (!at.has(page.roles)) return this.#renderer.forbidden(c, session, page, at)
      return await this.#perform(c, session, page, at, form, requestId)
    } catch (error) {
      const failure = this.#logged(error, requestId)
      if (failure.code === 'unauthenticated' && !(await this.#parts.access.sessionOf(c))) return this.#signedOut(c)
      if (!at) {
        const shown = await this.#contextOf(c, session, page, withoutStore(preferences), requestId)
        return this.#renderer.problem(c, session, shown, failure, requestId)
      }
      if (!form) return this.#renderer.problem(c, session, at, failure, requestId)
      return this.#render(
        c,
        session,
        page,
        at,
        rejectedForm(form, failure, at, actionOf(page, form)),
        requestId,
        failure,
      )
    }
  }

  /** Ends the session of this browser, or all sessions of the user. */
  async signOut(c: Context): Promise<Response> {
    const session = await this.#parts.access.sessionOf(c)
    if (session) {
      const form = parseForm(c, await readBytes(c, FORM_LIMIT))
      if (isOwnForm(c, form, session.csrfToken))
        await this.#parts.access.signOut(c, session, form.text('everywhere') === 'yes')
    }
    return c.redirect('/console', 303)
  }

  async #perform(
    c: Context,
    session: ConsoleSession,
    page: ConsolePage,
    at: PageContext,
    form: FormFields,
    requestId: string,
  ): Promise<Response> {
    const name = form.text(FRAME_FIELDS.action) ?? ''
    const action = actionOf(page, form)
    if (!action) throw new Failure('not-found', 'no such action')
    if (!isOwnForm(c, form, session.csrfToken)) throw new Failure('unauthenticated', 'the form is not of this session')
    if (!at.has(action.roles ?? page.roles)) throw new Failure('permission-denied', 'the role may not use this action')
    const { show } = action
    const operation = typeof action.operation === 'function' ? action.operation(at) : action.operation
    const formKey = operation.changes ? form.text(FRAME_FIELDS.key) : undefined
    let result: Record<string, unknown> = {}
    let sent: Record<string, unknown> = {}
    for (const [index, input] of [await action.input(form, at)].flat().entries()) {
      const idempotencyKey = formKey && (index === 0 ? formKey : `${formKey}-${index}`)
      const call = { operation, mode: at.mode, input, idempotencyKey, requestId }
      if (operation.stream) {
        const streamed = await this.#parts.access.streamAs(session, call)
        const about = { operation: operation.name, input, nowMs: at.nowMs }
        return this.#download(await asDownload(streamed, action, about), requestId)
      }
      sent = input
      const { status, body } = await this.#parts.access.performAs(session, call)
      // A refusal by the state is stored for the form's key, and answered like a result.
      if (status >= 400) throw failureOfBody(JSON.parse(body) as ErrorBody)
      result = JSON.parse(body) as Record<string, unknown>
    }
    if (show) {
      // The action may have added the second factor.
      const { mayUseLive } = (await this.#parts.access.sessionOf(c)) ?? session
      const toast = action.done(at.texts, at.mode)
      const loaded = {
        at: { ...at, mayUseLive },
        data: action.showsWithData ? await page.load(at) : undefined,
        form: action.showsWithData ? { ...NO_FORM, values: form.values() } : NO_FORM,
        toast: toast === '' ? undefined : toast,
        failure: undefined,
      }
      const sentForm = { form, input: sent }
      const answer = {
        ...page,
        live: [],
        lead: () => undefined,
        view: (view: ViewContext) => show(result, view, sentForm),
      }
      return this.#renderer.page(c, session, answer, loaded)
    }
    setToast(c, page, name, at.mode, this.#isSecure)
    const query = at.query.size === 0 ? '' : `?${at.query}`
    return c.redirect(action.next?.(result, at) ?? `${at.path}${query}`, 303)
  }

  #download(streamed: Awaited<ReturnType<ConsoleAccess['streamAs']>>, requestId: string): Response {
    const { platform, log } = this.#parts.services
    return streamResponse(streamed, CONSOLE_HEADERS, platform.timers, (err) =>
      log.error({ requestId, err }, 'a download was aborted'),
    )
  }

  async #render(
    c: Context,
    session: ConsoleSession,
    page: ConsolePage | undefined,
    at: PageContext,
    form: FormState,
    requestId: string,
    failure?: Failure,
  ): Promise<Response> {
    if (!page) return this.#renderer.notFound(c, session, at)
    if (!at.has(page.roles)) return this.#renderer.forbidden(c, session, page, at)
    if (page.scope !== 'account' && at.stores.length === 0) return this.#renderer.noStore(c, session, page, at)
    if (page.scope === 'store' && !at.store) return this.#renderer.chooseStore(c, session, page, at)
    if (page.file && at.query.has('file')) {
      const text = await page.file.text(at).catch((error: unknown) => this.#logged(error, requestId))
      if (text instanceof Failure) return this.#renderer.problem(c, session, at, text, requestId)
      return c.body(text, 200, {
        ...CONSOLE_HEADERS,
        'content-type': page.file.type ?? 'text/csv; charset=utf-8; header=present',
        'content-disposition': `attachment; filename="${page.file.name(at)}"`,
      })
    }
    const toast = takeToast(c, this.#pages, at.texts, this.#isSecure)
    try {
      const data = await page.load(at)
      return this.#renderer.page(c, session, page, { at, data, form, toast, failure })
    } catch (error) {
      return this.#renderer.problem(c, session, at, this.#logged(error, requestId), requestId)
    }
  }

  async #contextOf(
    c: Context,
    session: ConsoleSession,
    page: ConsolePage | undefined,
    preferences: Preferences,
    requestId: string,
  ): Promise<PageContext> {
    const { access, services } = this.#parts
    return contextOf(c, {
      session,
      page,
      pages: this.#pages,
      preferences,
      language: languageOf(c, session, this.#isSecure),
      nowMs: services.platform.clock.wall(),
      cloudUrl: services.config.baseUrl,
      perform: this.#reads.of(c, session, (operation, mode, input) =>
        access.performAs(session, { operation, mode, input, idempotencyKey: undefined, requestId }),
      ),
    })
  }

  #logged(error: unknown, requestId: string): Failure {
    const failure = asFailure(error)
    if (failure.code === 'internal') this.#parts.services.log.error({ requestId, err: error }, 'a console page failed')
    return failure
  }
}
