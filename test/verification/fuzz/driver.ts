import { createHash, type Hash } from 'node:crypto'
import type { Operation } from '../../../cloud/platform/operations/operation.ts'
import { OPERATION_TABLE } from '../../../cloud/service/operation-table.ts'
import type { Package } from '../../../cloud/platform/foundation/caller.ts'
import type { Chance } from '../simulation/virtual/chance.ts'
import { envelope, wildEnvelope, wrongAuthorization } from './requests/envelopes.ts'
import { idsIn, newFindings, prefixOf, type Findings } from './scene/findings.ts'
import type { TestAccounts, Party } from './scene/test-accounts.ts'
import { judge, withoutNames, type Exchange, type Fault } from './judge.ts'
import { loginOf } from './requests/makers.ts'
import { pageRequest } from './requests/pages.ts'
import { carryOut, type Plan } from './requests/plans.ts'
import { goodRequest } from './requests/recipes.ts'
import type { KeyKind, Scene } from './scene/scene.ts'
import type { Json, HttpReply, HttpRequest, ServedCloud } from './scene/served-cloud.ts'
import { signInOwner } from './scene/party-users.ts'
import { mayCall, type Step } from './steps.ts'

/** A fault and the request that shows it. */
export type FaultWithRequest = Fault & { readonly request: string }

/** A step with its valid request. `fault` is set if a request that prepared the step showed a fault. */
export interface Prepared {
  readonly base: Json
  readonly authorization: string | undefined
  readonly isGenuine: boolean
  /** Request for a page, instead of an operation. */
  readonly page: HttpRequest | undefined
  /** Random numbers for the step. If the step is repeated, these numbers are the same. */
  readonly chance: Chance
  readonly fault: FaultWithRequest | undefined
}

/** Makes requests from steps, sends them and judges the answers. */
export interface Driver {
  readonly sent: number
  readonly succeeded: ReadonlyMap<string, number>
  readonly statuses: ReadonlyMap<number, number>
  /** Hash of all answers so far. */
  hash(): string
  /** Each party lists its own data, so that the run knows the ids of all parties. */
  warmUp(): Promise<void>
  pass(ms: number): Promise<void>
  prepare(step: Step): Promise<Prepared>
  /** Changes the step's request as the plan says, and sends the changed request. Returns the first fault. */
  carryOut(step: Step, prepared: Prepared, plan: Plan): Promise<FaultWithRequest | undefined>
}

/** Areas whose operations work with test keys in every package (ADR accounts). */
const FREE_IN_SANDBOX = new Set(['scan and go', 'receipts', 'protection', 'agents'])
const LISTINGS = ['fetchStores', 'fetchProducts', 'fetchDevices', 'fetchApiKeys', 'getLoyaltyPrograms', 'fetchAgents']
/** Idempotency-Keys that all parties and operations share. */
const IDEMPOTENCY_KEYS = ['a', 'b', 'c', 'd', 'e', 'f']

type Plain = (
  body: Json,
  headers?: Record<string, string>,
) => Promise<{ reply: HttpReply; fault: FaultWithRequest | undefined }>

/** Creates a driver that knows only the test accounts. */
export function newDriver(accounts: TestAccounts, served: ServedCloud, chance: Chance): Driver {
  return new FuzzDriver(accounts, served, chance)
}

class FuzzDriver implements Driver {
  readonly #accounts: TestAccounts
  readonly #served: ServedCloud
  readonly #chance: Chance
  readonly #findings: Findings
  readonly succeeded = new Map<string, number>()
  readonly statuses = new Map<number, number>()
  readonly #tokens = new Map<string, string>()
  readonly #hash: Hash
  #sent = 0
  #count = 0
  #journeyFault: FaultWithRequest | undefined

  constructor(accounts: TestAccounts, served: ServedCloud, chance: Chance) {
    this.#accounts = accounts
    this.#served = served
    this.#chance = chance
    this.#findings = newFindings(new Set([this.#accounts.adminKeyId]))
    this.#hash = createHash('sha256')
  }

  async prepare(step: Step): Promise<Prepared> {
    this.#journeyFault = undefined
    const { operation, party, as, style } = step
    const scene = this.#sceneOf(party)
    const own = this.#chance.fork(`step ${++this.#count}`)
    const page = operation ? undefined : pageRequest(scene)
    const base = operation ? await this.#baseOf(operation, scene, step) : {}
    const genuine = await this.#authorizationOf(party, as)
    const isWrong = style === 'key' && genuine !== undefined && operation !== undefined && mayCall(operation, as)
    const authorization = isWrong ? wrongAuthorization(own, genuine) : genuine
    return { base, authorization, isGenuine: !isWrong, page, chance: own, fault: this.#journeyFault }
  }

  async carryOut(step: Step, prepared: Prepared, plan: Plan): Promise<FaultWithRequest | undefined> {
    const { operation, party, as, style, isOlderForm } = step
    const own = prepared.chance.fork('carry out')
    const about = { operation, isOlderForm, as, party, isGenuine: prepared.isGenuine }
    if (!operation || prepared.page) {
      const fault = prepared.page && (await this.#send(prepared.page, { ...about, unknownField: undefined }, {})).fault
      return fault
    }
    const request = isOlderForm && operation.get ? operation.get.request : operation.request
    const { body, unknownField: field } = carryOut(prepared.base, plan, request)
    // The cloud ignores query fields without a name.
    const unknownField = isOlderForm && field === '' ? undefined : field
    const headers = headersOf(prepared.authorization)
    const wrap = (each: Json, more: Record<string, string> = {}) =>
      envelope(operation, each, { ...headers, ...more }, isOlderForm)
    const plain = (each: Json, more: Record<string, string> = {}) =>
      this.#send(wrap(each, more), { ...about, unknownField }, each)
    if (style === 'foreign') return this.#foreignPair(step, prepared, own, plain)
    if (style === 'repeat') return this.#repeated(step, prepared, own, plain)
    if (style === 'raw') {
      const wild = wildEnvelope(own, wrap(body), operation)
      const isGet = wild.method === 'GET'
      return (await this.#send(wild, { ...about, isOlderForm: isGet, unknownField: undefined }, {})).fault
    }
    return (await plain(body)).fault
  }

  get sent(): number {
    return this.#sent
  }

  hash(): string {
    return this.#hash.copy().digest('hex')
  }

  pass(ms: number): Promise<void> {
    return this.#served.pass(ms)
  }

  async warmUp(): Promise<void> {
    for (const party of this.#accounts.parties)
      for (const name of LISTINGS) await this.#call(party, name, storeOrNone(name, party), 'secret')
  }

  #sceneOf(party: Party): Scene {
    return {
      party,
      chance: this.#chance,
      served: this.#served,
      accounts: this.#accounts,
      findings: this.#findings,
      call: (operation, body, as = 'secret') => this.#call(party, operation, body, as),
      text: () => `${party.canary} ${++this.#count % 97}`,
      count: () => ++this.#count,
    }
  }

  /** Sends a request that prepares another request. */
  async #call(party: Party, name: string, body: Json, as: KeyKind): Promise<Json | undefined> {
    const operation = OPERATION_TABLE.get(name)
    if (!operation) throw new Error(`there is no operation ${name}`)
    const request = envelope(operation, body, headersOf(await this.#authorizationOf(party, as)), operation.getOnly)
    const exchange = { operation, isOlderForm: operation.getOnly, as, party, isGenuine: true, unknownField: undefined }
    const { reply, fault } = await this.#send(request, exchange, body)
    if (fault) this.#journeyFault ??= fault
    return reply.status < 300 ? reply.json : undefined
  }

  async #authorizationOf(party: Party, as: KeyKind): Promise<string | undefined> {
    if (as === 'anyone') return undefined
    if (as === 'admin') return `Bearer ${this.#accounts.adminKey}`
    if (as === 'user') return `Bearer ${party.owner ? await signInOwner(this.#served, party.owner) : 'none'}`
    if (as !== 'agent') return `Bearer ${party.keys[as]}`
    const token = this.#tokens.get(party.name) ?? (await this.#logIn(party))
    return `Bearer ${token}`
  }

  async #logIn(party: Party): Promise<string> {
    if (!party.agent) return 'none'
    const answer = await this.#call(party, 'agentLogin', await loginOf(this.#sceneOf(party), party.agent), 'anyone')
    const token = String(answer?.['accessToken'])
    this.#tokens.set(party.name, token)
    return token
  }

  /** Sends one request, judges the answer and collects the ids in the answer. */
  async #send(
    request: HttpRequest,
    about: Omit<Exchange, 'sent' | 'reply' | 'errors' | 'packages'>,
    body: Json,
  ): Promise<{ reply: HttpReply; fault: FaultWithRequest | undefined }> {
    this.#sent++
    if (about.party) this.#findings.name(about.party.name, idsIn(`${request.path} ${String(request.body ?? '')}`))
    const reply = await this.#served.send(request)
    this.#hash.update(`${reply.status} ${reply.text}\n`)
    this.statuses.set(reply.status, (this.statuses.get(reply.status) ?? 0) + 1)
    const { operation, party, as } = about
    const isDone = reply.status >= 200 && reply.status < 300
    if (isDone && operation) this.succeeded.set(operation.name, (this.succeeded.get(operation.name) ?? 0) + 1)
    if (reply.status === 401 && as === 'agent' && party) this.#tokens.delete(party.name)
    const packages =
      isDone && operation && request.method !== 'OPTIONS' ? await this.#packagesOf(operation, about, body) : undefined
    const exchange: Exchange = { ...about, sent: request, reply, errors: this.#served.takeErrors(), packages }
    const [fault] = judge(exchange, this.#findings)
    if (isDone && party && as !== 'admin' && reply.json) this.#findings.learn(party.name, reply.json)
    return { reply, fault: fault && { ...fault, request: shown(request) } }
  }

  /** Current packages of the account and of the store in the request. Undefined if the operation needs no package. */
  async #packagesOf(
    operation: Operation,
    { party, as }: Pick<Exchange, 'party' | 'as'>,
    body: Json,
  ): Promise<Exchange['packages']> {
    if (!party || as === 'admin' || as === 'anyone') return undefined
    if (operation.callers.includes('anyone') || operation.minimumPackage === 'DISCOVER') return undefined
    if (party.mode === 'test' && FREE_IN_SANDBOX.has(operation.area)) return undefined
    const { reads } = this.#served.database
    const account = reads.selectFrom('account').select('package').where('account_id', '=', party.accountId)
    const storeId = typeof body['storeId'] === 'string' ? body['storeId'] : ''
    const store = reads.selectFrom('store').select('package').where('store_id', '=', storeId)
    const [have, named] = [await account.executeTakeFirst(), await store.executeTakeFirst()]
    return { account: (have?.package ?? 'DISCOVER') as Package, store: named?.package as Package | undefined }
  }

  async #baseOf(operation: Operation, scene: Scene, { isOlderForm }: Step): Promise<Json> {
    if (!isOlderForm || operation.getOnly) return goodRequest(operation, scene)
    const good = await goodRequest(operation, scene)
    const names = Object.keys((operation.get?.request as { shape?: Json } | undefined)?.shape ?? {})
    return Object.fromEntries(Object.entries(good).filter(([name]) => names.includes(name)))
  }

  /** Checks that an id of another party gets the same answer as an unknown id. */
  async #foreignPair(
    { operation, party, as }: Step,
    { base }: Prepared,
    own: Chance,
    plain: Plain,
  ): Promise<FaultWithRequest | undefined> {
    const places = idsOf(base)
    if (places.length === 0) return (await plain(base)).fault
    const { path, id } = own.one(places)
    const prefix = prefixOf(id) ?? ''
    const hidden =
      as === 'bound' && prefix === 'st' ? party.storeIds.slice(1) : this.#findings.foreign(party.name, prefix)
    if (hidden.length === 0 || as === 'admin') return (await plain(base)).fault
    const foreign = own.one(hidden)
    const nobodys = `${prefix}_${'7'.repeat(26)}`
    const unknown = await plain(replaced(base, path, nobodys))
    // The operation only stores the text, such as the name of an operator. It does not search for an id.
    const isRecorded = unknown.reply.status < 300 && operation?.changes === true
    if (unknown.fault || isRecorded) return unknown.fault
    const known = await plain(replaced(base, path, foreign))
    if (known.fault) return known.fault
    const [asUnknown, asKnown] = [withoutNames(unknown.reply, nobodys), withoutNames(known.reply, foreign)]
    if (asUnknown === asKnown) return undefined
    const detail = `${path.join('.')} of another party: ${asKnown.slice(0, 300)}\n  unknown: ${asUnknown.slice(0, 300)}`
    return { rule: 'foreign-id', detail, request: JSON.stringify(replaced(base, path, foreign)) }
  }

  /** Checks that a repeated request with the same Idempotency-Key gets the same answer. */
  async #repeated(step: Step, { base }: Prepared, own: Chance, plain: Plain): Promise<FaultWithRequest | undefined> {
    const header = { 'idempotency-key': own.one(IDEMPOTENCY_KEYS) }
    const first = await plain(base, header)
    if (first.fault || first.reply.status !== 200) return first.fault
    const again = await plain(base, header)
    if (again.fault || step.operation?.changes !== true || step.as === 'anyone') return again.fault
    if (again.reply.status === 200 && again.reply.text === first.reply.text) return undefined
    // The first request ended its own session.
    if (again.reply.status === 401 && step.as === 'user') return undefined
    const detail = `${first.reply.text.slice(0, 300)}\n  again: ${again.reply.status} ${again.reply.text.slice(0, 300)}`
    return { rule: 'idempotency', detail, request: JSON.stringify(base) }
  }
}

function storeOrNone(name: string, { storeIds }: Party): Json {
  return name === 'fetchProducts' || name === 'fetchDevices' || name === 'fetchAgents' ? { storeId: storeIds[0] } : {}
}

function headersOf(authorization: string | undefined): Record<string, string> {
  return authorization === undefined ? {} : { authorization }
}

type Place = { path: readonly string[]; id: string }

function idsOf(value: unknown, path: readonly string[] = []): Place[] {
  if (prefixOf(value) !== undefined) return [{ path, id: String(value) }]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, each]) => idsOf(each, [...path, name]))
}

function replaced(base: Json, path: readonly string[], id: string): Json {
  const body = structuredClone(base)
  let at: Json = body
  for (const step of path.slice(0, -1)) at = at[step] as Json
  at[path.at(-1) ?? ''] = id
  return body
}

function shown({ method, path, body }: HttpRequest): string {
  const text = typeof body === 'string' ? body : body ? Buffer.from(body).toString('base64') : ''
  return `${method} ${path} ${text.slice(0, 1_500)}`
}
