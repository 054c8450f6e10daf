import type { Context, Hono } from 'hono'
import { newId } from '../../../policy/ids.ts'
import { Failure } from '../../platform/foundation/failure.ts'
import { asFailure } from '../../service/http/as-failure.ts'
import { readBytes } from '../../service/http/body.ts'
import type { Services } from '../../platform/operations/operation.ts'
import { pages as registered } from '../pages/registry.ts'
import type { ConsoleAccess, ConsoleSession } from './access.ts'
import { consoleAssets, type ConsoleAssets } from './assets.ts'
import { FRAME_FIELDS, isOwnForm, NO_FORM, parseForm, rejectedForm, type FormFields, type FormState } from './form.ts'
import { liveRoute } from './live.ts'
import { CONSOLE_HEADERS } from './headers.ts'
import type { ConsolePage, PageAction, PageContext, ViewContext } from './page.ts'
import { contextOf, languageOf } from './context.ts'
import { ConsoleRenderer } from './renderer.tsx'
import { takeToast, setToast } from './toast.ts'
import { asMode, asStore, readPreferences, type Preferences } from './preferences.ts'

/** Maximum size of a form, bytes. */
const FORM_LIMIT = 64 * 1024

/** Parts of the cloud that the console uses. */
export interface ConsoleParts {
  readonly access: ConsoleAccess
  readonly services: Pick<Services, 'platform' | 'config' | 'log' | 'changes'>
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

function withoutStore({ mode }: Preferences): Preferences {
  return { mode, storeId: undefined, from: 'cookie' }
}

class Console {
  readonly #parts: ConsoleParts
  readonly #pages: readonly ConsolePage[]
  readonly #renderer: ConsoleRenderer
  readonly #isSecure: boolean

  constructor(parts: ConsoleParts, pages: readonly ConsolePage[], assets: ConsoleAssets) {
    this.#parts = parts
    this.#pages = pages
    this.#isSecure = parts.services.config.baseUrl.startsWith('https:')
    this.#renderer = new ConsoleRenderer(pages, assets, parts.services.platform)
  }

  /** Answers a GET. `page` is undefined for unknown addresses. */
  async show(c: Context, page: ConsolePage | undefined): Promise<Response> {
    const session = await this.#parts.access.sessionOf(c)
    if (!session) return this.#signedOut(c)
    const requestId = newId('req', this.#parts.services.platform)
    const preferences = readPreferences(c, this.#isSecure, session)
    try {
      const at = await this.#contextOf(c, session, page, preferences, requestId)
      return await this.#render(c, session, page, at, NO_FORM, requestId)
    } catch (error) {
      const failure = this.#logged(error, requestId)
      const at = await this.#contextOf(c, session, page, withoutStore(preferences), requestId)
      return this.#renderer.problem(c, session, at, failure, requestId)
    }
  }

  /** The sign-in page. htmx loads the whole page again, because only whole pages contain the sign-in page. */
  #signedOut(c: Context): Promise<Response> | Response {
    if (c.req.header('hx-request') !== 'true') return this.#parts.access.signInPage(c)
    return c.body(null, 200, { ...CONSOLE_HEADERS, 'hx-refresh': 'true' })
  }

  /** Answers a POST: calls the operation of the action, then redirects. A rejected form is shown again. */
  async act(c: Context, page: ConsolePage): Promise<Response> {
    if (!(await this.#parts.access.sessionOf(c))) return this.#signedOut(c)
    const body = await readBytes(c, FORM_LIMIT).catch((error: unknown) => asFailure(error))
    // The session may have ended, or may have other rights, since the form was begun.
    const session = await this.#parts.access.sessionOf(c)
    if (!session) return this.#signedOut(c)
    const requestId = newId('req', this.#parts.services.platform)
    const preferences = readPreferences(c, this.#isSecure, session)
    let form: FormFields | undefined
    let at: PageContext | undefined
    try {
      if (body instanceof Failure) throw body
      form = parseForm(c, body)
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
      return this.#render(c, session, page, at, rejectedForm(form, failure, at), requestId, failure)
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
    const action: PageAction | undefined = Object.hasOwn(page.actions ?? {}, name) ? page.actions?.[name] : undefined
    if (!action) throw new Failure('not-found', 'no such action')
    if (!isOwnForm(c, form, session.csrfToken)) throw new Failure('unauthenticated', 'the form is not of this session')
    if (!at.has(action.roles ?? page.roles)) throw new Failure('permission-denied', 'the role may not use this action')
    const { body } = await this.#parts.access.performAs(session, {
      operation: action.operation,
      mode: at.mode,
      input: action.input(form, at),
      idempotencyKey: action.operation.changes ? form.text(FRAME_FIELDS.key) : undefined,
      requestId,
    })
    const result = JSON.parse(body) as Record<string, unknown>
    const { show } = action
    if (show) {
      // The action may have added the second factor.
      const { mayUseLive } = (await this.#parts.access.sessionOf(c)) ?? session
      const toast = action.done(at.texts)
      const loaded = {
        at: { ...at, mayUseLive },
        data: undefined,
        form: NO_FORM,
        toast: toast === '' ? undefined : toast,
        failure: undefined,
      }
      const answer = { ...page, live: [], lead: () => undefined, view: (view: ViewContext) => show(result, view) }
      return this.#renderer.page(c, session, answer, loaded)
    }
    setToast(c, page, name, this.#isSecure)
    const query = at.query.size === 0 ? '' : `?${at.query}`
    return c.redirect(action.next?.(result, at) ?? `${at.path}${query}`, 303)
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
      perform: (operation, mode, input) =>
        access.performAs(session, { operation, mode, input, idempotencyKey: undefined, requestId }),
    })
  }

  #logged(error: unknown, requestId: string): Failure {
    const failure = asFailure(error)
    if (failure.code === 'internal') this.#parts.services.log.error({ requestId, err: error }, 'a console page failed')
    return failure
  }
}
