import type { Context, Hono } from 'hono'
import { routePath } from 'hono/route'
import { newId } from '../../../policy/ids.ts'
import { ERROR_STATUS, Failure } from '../../platform/foundation/failure.ts'
import { asFailure } from '../../service/http/as-failure.ts'
import { readBytes } from '../../service/http/body.ts'
import { clientAddress } from '../../service/http/public-access.ts'
import type { OperationLimits } from '../../service/http/operation-limits.ts'
import { performerForPages, streamerForPages, type PerformAs, userInMode } from '../../service/http/perform-as.ts'
import { sessionTokenOf, setSessionCookie, formSecretOf } from '../../service/http/authentication.ts'
import type { Operation, Services } from '../../platform/operations/operation.ts'
import type { Database } from '../../platform/persistence/database.ts'
import { invitedUser } from '../../platform/users/invitations.ts'
import { beginOpenIdSignIn, finishOpenIdSignIn, FLOW_MS } from '../../platform/users/openid-operations.ts'
import { CALLBACK_PATH } from '../../platform/users/openid-provider.ts'
import { passkeySiteOf, type PasskeySite } from '../../platform/users/console-address.ts'
import { signInWithPasskey } from '../../platform/users/passkey-operations.ts'
import { confirmSignIn } from '../../platform/users/second-factor-operations.ts'
import { acceptInvitation, signIn } from '../../platform/users/sign-in-operations.ts'
import { consoleAssets } from '../frame/assets.ts'
import { languageOf } from '../frame/context.ts'
import { NO_FORM, parseForm, rejectedForm, type FormFields, type FormState } from '../frame/form.ts'
import { CONSOLE_HEADERS } from '../frame/headers.ts'
import { credentialOf } from '../components/passkey.tsx'
import { consoleTexts } from '../texts/catalogue.ts'
import { AccountPage, CodePage, InvitationPage, SignInPage, type VisitorView } from './pages.tsx'
import { getCookie, setCookie } from 'hono/cookie'
import type { CloudConfig } from '../../platform/foundation/config.ts'
import { endSessions, signOut } from '../../platform/users/session-operations.ts'
import { findUserCaller } from '../../platform/users/sessions.ts'
import { findUser } from '../../platform/users/user-queries.ts'
import type { ConsoleAccess, ConsoleSession } from '../frame/page.ts'

/** Gives the console its sessions. `signInPage` answers while the browser is signed out. */
export function consoleAccess(
  database: Database,
  services: Services,
  limits: OperationLimits,
  signInPage: ConsoleAccess['signInPage'],
): ConsoleAccess {
  const { config, platform } = services
  const performAs = performerForPages(database, services, limits)
  const streamAs = streamerForPages(database, services, limits)

  const callerOf = async (c: Context) => {
    const token = sessionTokenOf(c, config)
    const caller = token === undefined ? undefined : await findUserCaller(database, token, platform.clock.wall())
    return token !== undefined && caller ? { token, caller } : undefined
  }

  return {
    async sessionOf(c) {
      const found = await callerOf(c)
      const row = found && (await findUser(database.reads, found.caller.keyId))
      if (!found || !row) return undefined
      const { caller, token } = found
      const { accountId, role, storeIds, mode, mayUseLive } = caller
      const user = { userId: row.user_id, name: row.name || row.email, email: row.email, accountId, role, storeIds }
      return { user, caller, mode, mayUseLive, csrfToken: formSecretOf(token) }
    },
    takePage: ({ caller }) => limits.takePage(caller.keyId),
    performAs: (session, { mode, ...call }) => performAs(userInMode(session.caller, mode), call),
    streamAs: async (session, { mode, ...call }) => streamAs(userInMode(session.caller, mode), call),
    signInPage,
    async signOut(c: Context, { caller }: ConsoleSession, everywhere: boolean) {
      const operation = everywhere ? endSessions : signOut
      await performAs(caller, {
        operation,
        input: {},
        idempotencyKey: undefined,
        requestId: newId('req', platform),
      })
      setSessionCookie(c, config, '')
    },
  }
}

/** Browsers accept the prefix `__Host-` only over HTTPS, from this host, for all paths. So no other host can plant a sign-in. */
const SECURE_NAME = '__Host-untag_openid'
/** Cookie over plain HTTP, for loopback addresses. */
const PLAIN_NAME = 'untag_openid'

/** A sign-in at the OpenID Connect provider: its sealed secrets, and the address to open afterwards. */
interface PendingSignIn {
  readonly flow: string
  readonly to: string
}

const isSecure = ({ baseUrl }: Pick<CloudConfig, 'baseUrl'>) => baseUrl.startsWith('https:')
const nameOf = (config: Pick<CloudConfig, 'baseUrl'>) => (isSecure(config) ? SECURE_NAME : PLAIN_NAME)

const optionsOf = (config: Pick<CloudConfig, 'baseUrl'>) => ({
  path: '/',
  httpOnly: true,
  // `Lax`, because the provider's page sends the browser back.
  sameSite: 'Lax' as const,
  secure: isSecure(config),
})

/** Keeps a sign-in in this browser, so that it cannot be finished in another one. */
function setFlowCookie(c: Context, config: Pick<CloudConfig, 'baseUrl'>, pending: PendingSignIn): void {
  const value = Buffer.from(JSON.stringify(pending)).toString('base64url')
  setCookie(c, nameOf(config), value, { ...optionsOf(config), maxAge: FLOW_MS / 1_000 })
}

/** The sign-in of this browser, whose cookie is deleted. Empty without a cookie. */
function takeFlowCookie(c: Context, config: Pick<CloudConfig, 'baseUrl'>): PendingSignIn {
  const value = getCookie(c, nameOf(config)) ?? ''
  setCookie(c, nameOf(config), '', { ...optionsOf(config), maxAge: 0 })
  try {
    const { flow, to } = JSON.parse(Buffer.from(value, 'base64url').toString('utf8')) as Partial<PendingSignIn>
    return { flow: String(flow ?? ''), to: String(to ?? '') }
  } catch {
    return { flow: '', to: '' }
  }
}

const FORM_LIMIT = 8 * 1024
const HOME = '/console'

/** Pages for visitors: sign-in and invitations. */
export class SignInPages {
  readonly #database: Database
  readonly #services: Services
  readonly #performAs: PerformAs
  readonly #assets = consoleAssets()
  readonly #site: PasskeySite | undefined

  constructor(database: Database, services: Services, limits: OperationLimits) {
    this.#database = database
    this.#services = services
    this.#performAs = performerForPages(database, services, limits)
    this.#site = passkeySiteOf(services.config)
  }

  /** Adds the routes. They come before the routes of the console, which answer every address below `/console`. */
  addTo(app: Hono): void {
    app.get('/console/sign-in', (c) => this.page(c))
    app.post('/console/sign-in', (c) => this.signIn(c))
    app.get('/console/sign-in/code', (c) => this.codePage(c))
    app.post('/console/sign-in/code', (c) => this.confirm(c))
    app.get('/console/sign-in/openid-connect', (c) => this.openId(c))
    app.get(CALLBACK_PATH, (c) => this.openIdAnswer(c))
    app.post('/console/sign-in/account', (c) => this.account(c))
    app.post('/console/sign-in/passkey', (c) => this.passkey(c))
    app.get('/console/invitations/:token', (c) => this.invitation(c, NO_FORM))
    app.post('/console/invitations/:token', (c) => this.accept(c))
  }

  /**
   * The sign-in page, at any address. After the sign-in the browser returns to this address. `again`: the provider asks
   * who signs in, because the last account did not work. `accounts`: the person must choose one.
   */
  page(
    c: Context,
    form: FormState = NO_FORM,
    status = 200,
    to?: string,
    { again = false, accounts = [] }: { again?: boolean; accounts?: readonly string[] } = {},
  ): Promise<Response> {
    const url = new URL(c.req.url)
    const here = url.pathname === '/console/sign-in' ? (c.req.query('to') ?? HOME) : `${url.pathname}${url.search}`
    const view = this.#viewOf(c, form)
    const provider = this.#services.identityProvider?.name
    // At a page, a browser with a cookie was signed in before. A cookie that has expired is gone.
    const hadSession = sessionTokenOf(c, this.#services.config) !== undefined
    const isPage = url.pathname !== '/console/sign-in'
    const isEnded = form === NO_FORM && (isPage ? hadSession : url.searchParams.has('ended'))
    // The answer of a form of this page is at no address of its own.
    const at = isPage && form === NO_FORM ? url : undefined
    const parts = { view, to: ownAddress(to ?? here), at, provider, again, site: this.#site, accounts, isEnded }
    return this.#show(c, SignInPage(parts), status)
  }

  async signIn(c: Context): Promise<Response> {
    let form: FormFields | undefined
    try {
      form = await this.#formOf(c)
      const account = form.text('account')
      const credentials = { email: form.text('email') ?? '', password: form.text('password') ?? '' }
      const input = { ...credentials, ...(account !== undefined && { account }) }
      const to = ownAddress(form.text('to') ?? HOME)
      if ((await this.#start(c, signIn, input)) === 'active') return c.redirect(to, 303)
      return this.#show(c, CodePage({ view: this.#viewOf(c, NO_FORM), to }), 200)
    } catch (error) {
      const [state, status] = this.#rejected(c, form, error)
      const accounts = accountsOf(error)
      const { severalAccounts } = consoleTexts(this.#languageOf(c)).signIn
      const shown = accounts.length === 0 ? state : { ...state, message: severalAccounts }
      return this.page(c, shown, status, form?.text('to'), { accounts })
    }
  }

  /** The page of the second step, at an address of its own for the other language. */
  codePage(c: Context): Response | Promise<Response> {
    const to = ownAddress(c.req.query('to') ?? HOME)
    if (sessionTokenOf(c, this.#services.config) === undefined)
      return c.redirect(`/console/sign-in?${new URLSearchParams({ to })}`, 303)
    return this.#show(c, CodePage({ view: this.#viewOf(c, NO_FORM), to }), 200)
  }

  /** The second step of a sign-in. The cookie holds the pending session of the first step. */
  async confirm(c: Context): Promise<Response> {
    let form: FormFields | undefined
    try {
      form = await this.#formOf(c)
      const sessionToken = sessionTokenOf(c, this.#services.config) ?? ''
      await this.#start(c, confirmSignIn, { sessionToken, code: form.text('code') ?? '' })
      return c.redirect(ownAddress(form.text('to') ?? HOME), 303)
    } catch (error) {
      const [state, status] = this.#rejected(c, form, error)
      const { wrongCode } = consoleTexts(this.#languageOf(c)).signIn
      const message = status === 401 ? wrongCode : state.message
      const view = this.#viewOf(c, { ...state, ...(message !== undefined && { message }) })
      return this.#show(c, CodePage({ view, to: ownAddress(form?.text('to') ?? HOME) }), status)
    }
  }

  /** Sends the browser to the OpenID Connect provider. A cookie keeps the secrets of this sign-in. */
  async openId(c: Context): Promise<Response> {
    const to = ownAddress(c.req.query('to') ?? HOME)
    try {
      const { body } = await this.#visit(c, beginOpenIdSignIn, { again: c.req.query('again') === 'yes' })
      const { url, flow } = JSON.parse(body) as { url: string; flow: string }
      setFlowCookie(c, this.#services.config, { flow, to })
      return c.redirect(url, 303)
    } catch (error) {
      return this.#openIdFailed(c, error, to)
    }
  }

  /** The provider sent the browser back. */
  async openIdAnswer(c: Context): Promise<Response> {
    return this.#finishOpenId(c, () => Promise.resolve({ query: new URL(c.req.url).search.slice(1) }))
  }

  /** The person chose an account. */
  async account(c: Context): Promise<Response> {
    return this.#finishOpenId(c, async () => {
      const form = await this.#formOf(c)
      return { query: '', account: form.text('account') ?? '' }
    })
  }

  async #finishOpenId(c: Context, read: () => Promise<{ query: string; account?: string }>): Promise<Response> {
    const { flow, to } = takeFlowCookie(c, this.#services.config)
    try {
      if ((await this.#start(c, finishOpenIdSignIn, { flow, ...(await read()) })) === 'active')
        return c.redirect(ownAddress(to), 303)
      return this.#show(c, CodePage({ view: this.#viewOf(c, NO_FORM), to: ownAddress(to) }), 200)
    } catch (error) {
      const accounts = accountsOf(error)
      if (accounts.length === 0) return this.#openIdFailed(c, error, to)
      const { flow: next = '', usedBefore = [] } = error instanceof Failure ? error.extras : {}
      setFlowCookie(c, this.#services.config, { flow: next, to })
      return this.#show(
        c,
        AccountPage({ view: this.#viewOf(c, NO_FORM), accounts, usedBefore, to: ownAddress(to) }),
        200,
      )
    }
  }

  #openIdFailed(c: Context, error: unknown, to: string): Promise<Response> {
    const [state, status] = this.#rejected(c, undefined, error)
    const { signIn: texts } = consoleTexts(this.#languageOf(c))
    const name = this.#services.identityProvider?.name ?? ''
    const own: Readonly<Record<number, string>> = {
      400: texts.providerFailed,
      401: texts.providerFailed,
      503: texts.providerDown(name),
    }
    const message = notInvitedText(texts.notInvited, error) ?? own[status] ?? state.message
    return this.page(c, { ...state, ...(message !== undefined && { message }) }, status, to, { again: true })
  }

  /** Sign-in with a passkey. The script of the page fills the field `credential`. */
  async passkey(c: Context): Promise<Response> {
    let form: FormFields | undefined
    try {
      form = await this.#formOf(c)
      await this.#start(c, signInWithPasskey, { credential: credentialOf(form) })
      return c.redirect(ownAddress(form.text('to') ?? HOME), 303)
    } catch (error) {
      const [state, status] = this.#rejected(c, form, error)
      const { wrong } = consoleTexts(this.#languageOf(c)).passkeys
      return this.page(c, status === 401 ? { ...state, message: wrong } : state, status, form?.text('to'))
    }
  }

  async invitation(c: Context, form: FormState, status = 200): Promise<Response> {
    const token = c.req.param('token') ?? ''
    const known = await invitedUser(this.#database.reads, token, this.#services.platform.clock.wall()).catch(unlessGone)
    const view = this.#viewOf(c, form)
    return this.#show(c, InvitationPage({ view, email: known?.email }), known ? status : 404)
  }

  async accept(c: Context): Promise<Response> {
    let form: FormFields | undefined
    try {
      form = await this.#formOf(c)
      const input = { token: c.req.param('token') ?? '', name: form.text('name'), password: form.text('password') }
      await this.#start(c, acceptInvitation, input)
      return c.redirect(HOME, 303)
    } catch (error) {
      const [state, status] = this.#rejected(c, form, error)
      return this.invitation(c, state, status)
    }
  }

  /** Calls the operation as a visitor, and stores the new session in the cookie. Returns its state. */
  async #start(c: Context, operation: Operation, input: Record<string, unknown>): Promise<'active' | 'pending'> {
    const device = (c.req.header('user-agent') ?? '').replaceAll(/[^\x20-\x7e]/g, '').slice(0, 200)
    const { body } = await this.#visit(c, operation, { ...input, ...(device !== '' && { device }) })
    const { sessionToken, state } = JSON.parse(body) as { sessionToken: string; state: 'active' | 'pending' }
    setSessionCookie(c, this.#services.config, sessionToken)
    return state
  }

  /** Calls an operation as a visitor. */
  #visit(c: Context, operation: Operation, input: Record<string, unknown>) {
    const { config, platform } = this.#services
    const caller = { kind: 'anyone' as const, address: clientAddress(c, config.trustedProxies) }
    const requestId = newId('req', platform)
    return this.#performAs(caller, { operation, input, idempotencyKey: undefined, requestId })
  }

  async #formOf(c: Context): Promise<FormFields> {
    if (!isOwnOrigin(c)) throw new Failure('permission-denied', 'another site sent this form')
    return parseForm(c, await readBytes(c, FORM_LIMIT))
  }

  #rejected(c: Context, form: FormFields | undefined, error: unknown): [FormState, number] {
    const failure = asFailure(error)
    if (failure.code === 'internal')
      this.#services.log.error({ err: error, route: routePath(c, -1) }, 'a sign-in failed')
    const language = this.#languageOf(c)
    const texts = consoleTexts(language)
    const own: Partial<Record<Failure['code'], string>> = {
      unauthenticated: texts.signIn.wrong,
      'resource-exhausted': texts.signIn.tooMany,
      'permission-denied': texts.signIn.otherSite,
      'not-found': texts.signIn.invitationGone,
    }
    const state = form ? rejectedForm(form, failure, { texts, language }) : NO_FORM
    const message = own[failure.code] ?? state.message ?? texts.errors.codes[failure.code]
    return [{ ...state, message }, ERROR_STATUS[failure.code]]
  }

  #viewOf(c: Context, form: FormState): VisitorView {
    return { language: this.#languageOf(c), assets: this.#assets, form }
  }

  #languageOf(c: Context) {
    return languageOf(c, undefined, this.#services.config.baseUrl.startsWith('https:'))
  }

  async #show(c: Context, page: unknown, status: number): Promise<Response> {
    return c.html(`<!doctype html>${String(page)}`, status as 200, {
      ...CONSOLE_HEADERS,
      'referrer-policy': 'same-origin',
    })
  }
}

/** The address, if it is an address of the console; otherwise the console. Never another site. */
function ownAddress(address: string): string {
  if (!/^\/console(?:[/?][\x21-\x7e]*)?$/.test(address) || address.includes('//') || address.includes('\\')) return HOME
  const { pathname, search } = new URL(address, 'http://console')
  return pathname.startsWith(HOME) ? `${pathname}${search}` : HOME
}

/** True if the browser does not name another site as the sender of the form. */
function isOwnOrigin(c: Context): boolean {
  const site = c.req.header('sec-fetch-site')
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false
  const origin = c.req.header('origin')
  if (origin === undefined) return true
  const host = /^https?:\/\/([^/]+)$/.exec(origin)?.[1]
  return host !== undefined && host === (c.req.header('host') ?? new URL(c.req.url).host)
}

/** The accounts of which the person must choose one; empty if the error is another one. */
const accountsOf = (error: unknown): readonly string[] =>
  (error instanceof Failure ? error.extras.accounts : undefined) ?? []

type NotInvited = ReturnType<typeof consoleTexts>['signIn']['notInvited']

function notInvitedText(texts: NotInvited, error: unknown): string | undefined {
  const { reason = '', email = '' } = error instanceof Failure ? error.extras : {}
  return Object.hasOwn(texts, reason) ? texts[reason as keyof NotInvited](email) : undefined
}

function unlessGone(error: unknown): undefined {
  if (error instanceof Failure && error.code === 'not-found') return undefined
  throw error
}
