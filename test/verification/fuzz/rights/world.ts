import { sql } from 'kysely'
import { checkDigit } from '../../../../policy/gs1/gtin.ts'
import { hashPassword } from '../../../../cloud/platform/users/passwords.ts'
import { startSession } from '../../../../cloud/platform/users/sessions.ts'
import { formSecretOf } from '../../../../cloud/service/http/authentication.ts'
import type { Database } from '../../../../cloud/platform/persistence/database.ts'
import { hash32, type Chance } from '../../simulation/virtual/chance.ts'
import { messagesOfAgent } from '../scene/agent-login.ts'
import { newOwner } from '../scene/party-users.ts'
import {
  API,
  ORIGIN,
  replyOf,
  serveCloud,
  type HttpReply,
  type HttpRequest,
  type Json,
  type ServedCloud,
} from '../scene/served-cloud.ts'
import { enrol, type TestAccounts } from '../scene/test-accounts.ts'
import {
  MODES,
  mayUseLive,
  rightsOf,
  type Account,
  type Guesses,
  type Holder,
  type Key,
  type Link,
  type Mode,
  type PlatformSession,
  type Session,
  type Store,
  type StoreAgent,
  type User,
} from './facts.ts'
import { Shop } from './shop.ts'

/** A rule of this fuzzer, for messages and mutants. */
export type RightsRule =
  | 'server-error'
  | 'no-right'
  | 'ended-right'
  | 'foreign-data'
  | 'refused'
  | 'wrong-account'
  | 'guesses'
  | 'two-step'
  | 'stream'
  | 'push'
  | 'share'
  | 'text'

/** Ends a step whose answer breaks a rule. */
export class Violation extends Error {
  readonly rule: RightsRule
  constructor(rule: RightsRule, detail: string) {
    super(detail)
    this.rule = rule
  }
}

/** An open `/console/live`. */
export interface Stream {
  readonly label: string
  readonly session: Session
  readonly mode: Mode
  text: string
  /** True if a change that the stream may report has happened. */
  isDue: boolean
  cancel(): Promise<void>
}

/** A browser that a session subscribed to notices about orders. */
export interface Browser {
  readonly label: string
  readonly session: Session
  /** Session that the person of the browser has ended before a notice. */
  heardAfterEnd: boolean
}

export const PASSWORDS = ['four words nobody guesses', 'five other words nobody guesses'] as const
const SESSIONS_OF_USER = 20
const PUSH = 'https://push.sim/'
/** A till that answers only when the run lets it. */
export const SLOW_TILL = 'http://slow.sim'
const WORDS = /Kanto\dq|Ort\d+q/g
const COOKIE = '__Host-untag_session'

/** The cloud, an agent, and what the oracle knows of accounts, users, keys and sessions. */
export class World {
  readonly accounts: Account[] = []
  readonly stores: Store[] = []
  readonly users: User[] = []
  readonly sessions: Session[] = []
  /** Sessions of people who run the cloud. */
  readonly platformSessions: PlatformSession[] = []
  readonly keys: Key[] = []
  readonly agents: StoreAgent[] = []
  readonly links: Link[] = []
  readonly streams: Stream[] = []
  readonly browsers: Browser[] = []
  /** Wrong guesses by what they are counted for. */
  readonly guesses = new Map<string, Guesses>()
  /** Requests for accounts of each network, by time. */
  readonly registrations = new Map<string, number[]>()
  /** How often steps reached what they should reach. */
  readonly reached = new Map<string, number>()
  readonly adminKey: string
  #served: ServedCloud | undefined
  #shop: Shop | undefined
  #hold: { began(): void; released: Promise<void> } | undefined
  #hashes: string[] = []
  #products = 0

  constructor(adminKey: string) {
    this.adminKey = adminKey
  }

  get served(): ServedCloud {
    if (!this.#served) throw new Error('the world is not open')
    return this.#served
  }

  get shop(): Shop {
    if (!this.#shop) throw new Error('the world is not open')
    return this.#shop
  }

  get nowMs(): number {
    return this.served.platform.clock.wall()
  }

  async open(accounts: TestAccounts, database: Database, seed: number): Promise<void> {
    const { keyFiles, startMs } = accounts
    this.#served = await serveCloud(
      database,
      keyFiles,
      { seed, startMs },
      {
        config: { trustedProxies: ['unknown'] },
        outgoing: (request) => this.#outgoing(request),
      },
    )
    this.#shop = new Shop(seed)
    for (const password of PASSWORDS)
      this.#hashes.push(await hashPassword('fuzzer', password, this.served.platform.random))
    // The person is what the query of the address says.
    Object.assign(this.served.cloud.services, {
      identityProvider: {
        name: 'Provider',
        check: () => Promise.resolve(),
        begin: () => Promise.resolve({ url: `${ORIGIN}/p`, flow: { state: 's', nonce: 'n', verifier: 'v' } }),
        finish: (email: string) =>
          Promise.resolve({
            issuer: 'p',
            subject: email,
            email,
            refusal: undefined,
            name: 'P',
            hasSecondFactor: false,
          }),
      },
    })
    const names = ['alpha', 'beta']
    for (const name of names) await this.#addAccount(accounts, name)
  }

  async #addAccount({ parties }: TestAccounts, name: string): Promise<void> {
    const sides = parties.filter((party) => party.name.startsWith(`${name}.`))
    const rootKeys = Object.fromEntries(sides.map(({ mode, keys }) => [mode, keys.secret])) as Record<Mode, string>
    const { accountId = '' } = sides[0] ?? {}
    const word = `Kanto${this.accounts.length}q`
    const account: Account = { label: name, name, accountId, word, rootKeys, stores: [] }
    this.accounts.push(account)
    const { reads } = this.served.database
    for (const { mode, storeIds, agent } of sides)
      for (const storeId of storeIds) {
        const row = reads.selectFrom('store').select('package').where('store_id', '=', storeId)
        const { package: have } = await row.executeTakeFirstOrThrow()
        const label = `${name}.${mode}.${this.stores.length}`
        const known = { label, storeId, account, mode, word: `Ort${this.stores.length}q`, productId: '' }
        const store: Store = { ...known, package: have as Store['package'] }
        account.stores.push(store)
        this.stores.push(store)
        await this.root(account, mode, 'updateStore', { storeId, tradingName: `Laden ${store.word}` })
        const ware = { storeId, ean: this.newEan(), name: 'Ware', price: 4.99, vat: 19, tagged: false }
        store.productId = String((await this.root(account, mode, 'insertProduct', ware))['productId'])
        if (agent?.storeId === storeId) this.addAgent(store, agent)
      }
    const [test, live] = MODES.map((mode) => account.stores.find((store) => store.mode === mode))
    const own = [test, live].filter((store) => store !== undefined)
    const local = (person: string) => `${person}@${word.toLowerCase()}.example`
    for (const [email, role, stores, isSandboxOnly] of [
      [local('root'), 'owner', null, false],
      [local('owner'), 'owner', null, false],
      [local('admin'), 'admin', null, false],
      [local('manager'), 'manager', own, false],
      [local('associate'), 'associate', null, false],
      [local('viewer'), 'viewer', null, true],
      ['anna@both.example', name === 'alpha' ? 'admin' : 'viewer', null, false],
      ['bert@both.example', 'manager', own, false],
    ] as const)
      await this.addUser(
        account,
        { email, role, stores, isSandboxOnly },
        email.startsWith('bert') && name === 'beta' ? 1 : 0,
      )
  }

  addAgent(store: Store, identity: StoreAgent['identity']): void {
    const label = `agent ${this.agents.length}`
    this.agents.push({ label, kind: 'agent', store, identity, token: '', tokenMs: 0, isOpen: true })
  }

  /** Enrols a new agent after the revocation of the last one. */
  async replaceAgent({ store }: StoreAgent): Promise<void> {
    this.addAgent(store, await enrol(this.served, store.account.rootKeys[store.mode], store.storeId))
  }

  newEan(): string {
    const digits = `43${String(++this.#products).padStart(10, '0')}`
    return `${digits}${checkDigit(digits)}`
  }

  /** Adds a user who has accepted an invitation, with one of two passwords. */
  async addUser(
    account: Account,
    wanted: Pick<User, 'email' | 'role' | 'stores' | 'isSandboxOnly'>,
    password: 0 | 1 = 0,
  ): Promise<User> {
    const owner = await newOwner(this.served, { accountId: account.accountId, canary: 'x' })
    const row = {
      ...owner,
      email: wanted.email,
      name: 'Frau',
      role: wanted.role,
      store_ids: wanted.stores && JSON.stringify(wanted.stores.map(({ storeId }) => storeId)),
      sandbox_only: wanted.isSandboxOnly ? 1 : 0,
      password_hash: this.#hashes[password] ?? '',
    }
    await this.served.database.write((db) => db.insertInto('console_user').values(row).execute())
    const own = { account, label: `user ${this.users.length}`, userId: row.user_id, totp: undefined, isGone: false }
    const user: User = { ...own, ...wanted, hasAccepted: true, isLinked: false, password: PASSWORDS[password] }
    this.users.push(user)
    return user
  }

  /** Starts a session without a password, as a sign-in does. */
  async startSession(user: User, mode: Mode, hasFactor: boolean): Promise<Session> {
    const { database, platform } = this.served
    const { sessionToken } = await database.write(async (db) => {
      const row = db.selectFrom('console_user').selectAll().where('user_id', '=', user.userId)
      const wanted = { state: 'active' as const, hasSecondFactor: hasFactor, mode, userAgent: 'fuzzer' }
      return startSession(db, await row.executeTakeFirstOrThrow(), wanted, platform)
    })
    return this.addSession(user, { token: sessionToken, mode, hasFactor })
  }

  addSession(user: User, { token, mode, hasFactor }: Pick<Session, 'token' | 'mode' | 'hasFactor'>): Session {
    const open = this.sessions.filter((session) => session.user === user && session.isOpen)
    // A further sign-in ends the oldest session.
    if (open.length >= SESSIONS_OF_USER && open[0]) open[0].isOpen = false
    const label = `session ${this.sessions.length} of ${user.email}`
    const session: Session = { label, kind: 'user', user, token, mode, hasFactor, isOpen: true }
    if (!mayUseLive(session)) session.mode = 'test'
    this.sessions.push(session)
    return session
  }

  endSessionsOf(user: User, kept?: Session): void {
    for (const session of this.sessions) if (session.user === user && session !== kept) session.isOpen = false
  }

  /** Each change of a password or factor ends other sessions, begun changes and open links. */
  credentialsChanged(user: User, kept?: Session): void {
    this.endSessionsOf(user, kept)
    if (kept?.begun) kept.begun = { ...kept.begun, untilMs: 0 }
    for (const link of this.links) if (link.user === user) link.isOpen = false
  }

  /** An open session of the owner who stays, with a second factor. */
  async rootSession(account: Account): Promise<Session> {
    const user = this.users.find((each) => each.account === account && each.email.startsWith('root@'))
    if (!user) throw new Error('the account has no root')
    const open = this.sessions.find((session) => session.user === user && session.isOpen)
    return open ?? this.startSession(user, 'live', true)
  }

  /** Calls an operation with a key that stays valid. */
  async root(account: Account, mode: Mode, operation: string, body: Json): Promise<Json> {
    const reply = await this.send(this.request(operation, body, account.rootKeys[mode]))
    if (reply.status !== 200) throw new Violation('refused', `${operation} of ${account.name}: ${shown(reply)}`)
    this.noteChange(account, mode, null)
    return reply.json ?? {}
  }

  /** An administrator gives a store another package. */
  async setPackage(store: Store, wanted: Store['package']): Promise<void> {
    const body = { storeId: store.storeId, package: wanted }
    const reply = await this.send(this.request('setStorePackage', body, this.adminKey))
    if (reply.status !== 200) throw new Violation('refused', `setStorePackage: ${shown(reply)}`)
    store.package = wanted
    this.noteChange(store.account, store.mode, null, store)
  }

  /** The token of a caller. An agent signs in before. */
  async tokenOf(holder: Holder): Promise<string> {
    if (holder.kind !== 'agent' || !holder.isOpen || this.nowMs - holder.tokenMs < 60_000) return holder.token
    const { agentId } = holder.identity
    const asked = await this.send(this.request('agentLogin', { agentId }))
    const challenge = String(asked.json?.['challenge'])
    const assertion = messagesOfAgent(holder.identity).assertion(challenge, this.nowMs)
    const { json } = await this.send(this.request('agentLogin', { agentId, assertion }))
    holder.token = String(json?.['accessToken'])
    holder.tokenMs = this.nowMs
    return holder.token
  }

  request(operation: string, body: Json, token?: string, address = '10.0.0.1'): HttpRequest {
    return {
      method: 'POST',
      path: `${API}/${operation}`,
      headers: {
        'content-type': 'application/json',
        'x-forwarded-for': address,
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(body),
      isSlow: /^(?:signIn|acceptInvitation|changePassword)$/.test(operation),
    }
  }

  page(session: Pick<Session, 'token'>, path: string): HttpRequest {
    return { method: 'GET', path, headers: { cookie: `${COOKIE}=${session.token}`, 'x-forwarded-for': '10.0.0.1' } }
  }

  form(session: Session, path: string, fields: Record<string, string>): HttpRequest {
    const type = { 'content-type': 'application/x-www-form-urlencoded', origin: ORIGIN, host: 'cloud.sim' }
    const body = new URLSearchParams({ _csrf: formSecretOf(session.token), ...fields }).toString()
    return {
      ...this.page(session, path),
      method: 'POST',
      headers: { ...this.page(session, path).headers, ...type },
      body,
    }
  }

  /** Sends a request. No answer is a 5xx. */
  async send(request: HttpRequest): Promise<HttpReply> {
    return this.#checked(await this.served.send(request), request)
  }

  /**
   * Sends a request that waits: for its body, or for the system of the merchant. `meanwhile` runs while it waits, if the
   * cloud lets it wait at all.
   */
  async sendHeld(request: HttpRequest, at: 'body' | 'system', meanwhile: () => Promise<unknown>): Promise<HttpReply> {
    let began = () => {}
    let release = () => {}
    const waits = new Promise<void>((resolve) => void (began = resolve))
    const released = new Promise<void>((resolve) => void (release = resolve))
    const { method, path, headers, isSlow } = request
    const bytes = Buffer.from(String(request.body))
    const late = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          began()
          await released
          controller.enqueue(bytes)
          controller.close()
        },
      },
      { highWaterMark: 0 },
    )
    if (at === 'system') this.#hold = { began, released }
    const init = { method, headers, body: at === 'body' ? late : bytes, duplex: 'half' } as RequestInit
    const answer = Promise.resolve(this.served.cloud.app.request(`${ORIGIN}${path}`, init))
    await this.served.settled(Promise.race([waits, answer]), isSlow)
    try {
      await meanwhile()
    } finally {
      release()
      this.#hold = undefined
    }
    const response = await this.served.settled(answer, isSlow)
    return this.#checked(replyOf(response, await this.served.settled(response.text())), request)
  }

  #checked(reply: HttpReply, request: HttpRequest): HttpReply {
    const errors = this.served.takeErrors()
    if (reply.status >= 500 || errors.length > 0)
      throw new Violation('server-error', `${request.path}: ${shown(reply)} ${errors.join('\n')}`)
    return reply
  }

  /** Throws if the answer holds a word of an account or store that the caller may not see. */
  assertSecrecy(reply: HttpReply, request: HttpRequest, allowed: readonly string[]): void {
    const sent = decodeURIComponent(`${request.path} ${String(request.body ?? '')}`.replaceAll('%', '%25'))
    const foreign = (reply.text.match(WORDS) ?? []).find((word) => !allowed.includes(word) && !sent.includes(word))
    if (foreign === undefined) return
    const at = reply.text.indexOf(foreign)
    throw new Violation('foreign-data', `${foreign} in ${request.path}: ${reply.text.slice(at - 80, at + 80)}`)
  }

  /** The number of rows with this mark. */
  async countMarks([table, column]: readonly [string, string], mark: string): Promise<number> {
    const query = sql<{
      n: number
    }>`select count(*) as n from ${sql.table(table)} where ${sql.ref(column)} like ${`%${mark}%`}`
    return Number((await query.execute(this.served.database.reads)).rows[0]?.n)
  }

  /** A change that streams may report. `by`: stores of the caller who made it; null: all. `store`: the changed one. */
  noteChange(account: Account, mode: Mode, by: readonly Store[] | null, store?: Store): void {
    for (const stream of this.streams) {
      const { session } = stream
      const rights = rightsOf(session)
      if (!rights || rights.account !== account || stream.mode !== mode) continue
      if (mode === 'live' && !mayUseLive(session)) continue
      const changed = [...(by ?? []), ...(store ? [store] : [])]
      const isSeen = rights.stores === null || changed.some((each) => rights.stores?.includes(each))
      if (isSeen) stream.isDue = true
    }
  }

  /** Throws if a stream reported a change that its session may not know of. */
  async checkStreams(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    for (const stream of this.streams) {
      const hasNews = stream.text.includes('event: changed')
      stream.text = ''
      if (!stream.session.isOpen) stream.isDue = false
      if (hasNews && !stream.isDue)
        throw new Violation('stream', `${stream.label} of ${stream.session.label} got a change`)
      if (hasNews) this.reach('change on a stream')
    }
  }

  reach(what: string): void {
    this.reached.set(what, (this.reached.get(what) ?? 0) + 1)
  }

  /** Counts a wrong guess. Throws if a period has more than the limit. */
  countGuess(subject: string, limit = 10): void {
    const known = this.guesses.get(subject)
    const isOver = !known || known.sinceMs + 15 * 60_000 <= this.nowMs
    const guesses = isOver ? { sinceMs: this.nowMs, count: 1 } : { ...known, count: known.count + 1 }
    this.guesses.set(subject, guesses)
    if (guesses.count > limit) throw new Violation('guesses', `${subject}: ${guesses.count} guesses in 15 minutes`)
  }

  /** The number of guesses in the present period. */
  guessesOf(subject: string): number {
    const known = this.guesses.get(subject)
    return !known || known.sinceMs + 15 * 60_000 <= this.nowMs ? 0 : known.count
  }

  #outgoing({ url, headers }: { url: string; headers: Readonly<Record<string, string>> }) {
    const answer = (status: number, body: unknown) => ({
      status,
      headers: { 'content-type': 'application/json' },
      body: new TextEncoder().encode(JSON.stringify(body)),
      isCut: false,
    })
    if (url.startsWith(PUSH)) {
      const browser = this.browsers.find(({ label }) => url === PUSH + label)
      if (browser && !browser.session.isOpen) browser.heardAfterEnd = true
      this.reach('notice of an order')
      return Promise.resolve(answer(201, {}))
    }
    if (!url.startsWith(SLOW_TILL)) return undefined
    const name = Object.entries(headers).find(([each]) => each.toLowerCase() === 'authorization')?.[1] ?? ''
    const { began, released = Promise.resolve() } = this.#hold ?? {}
    began?.()
    const article = { ean: '4006381333931', name: `Ware ${name.replace('Bearer ', '')}`, price: 1.99, vat: 19 }
    return released.then(() => answer(200, url.includes('/articles') ? { articles: [article] } : {}))
  }

  async stop(): Promise<void> {
    await Promise.all(this.streams.map((stream) => stream.cancel()))
    await this.#shop?.stop()
    await this.#served?.stop()
  }
}

/** An answer in a message. */
export const shown = ({ status, text }: HttpReply) => `${status} ${text.slice(0, 300)}`

/** Picks by label, so that fewer steps before change the choice as little as possible. */
export function pick<T extends { readonly label: string }>(chance: Chance, list: readonly T[]): T | undefined {
  const salt = String(chance.next())
  return list.reduce<T | undefined>(
    (best, each) => (!best || hash32(salt + each.label) > hash32(salt + best.label) ? each : best),
    undefined,
  )
}
