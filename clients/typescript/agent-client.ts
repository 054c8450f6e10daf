import type { AgentAnswer, AgentOperations, AgentRequest } from '../../edge-agent/http/operations.ts'
import { AgentError, asAgentError, errorOfAnswer, UntagError } from './error.ts'
import { followEvents, type AgentEvent, type EventOptions } from './agent-events.ts'
import { exchange } from './exchange.ts'
import { REAL_PLATFORM, type ClientPlatform } from './platform.ts'

export { AgentError, type AgentFaultCode } from './error.ts'
export type { AgentEvent, EventOptions } from './agent-events.ts'
export type { ClientPlatform } from './platform.ts'
export type { UntagErrorDetail } from './error.ts'
export type { AgentAnswer, AgentRequest } from '../../edge-agent/http/operations.ts'

export interface AgentClientOptions {
  /** Address of the agent, such as `http://127.0.0.1:8090`. */
  baseUrl: string
  /**
   * Credential of this agent. Without a credential the agent answers only requests for health, readiness and its
   * OpenAPI document.
   */
  credential?: string | undefined
  /** Replaces the global `fetch`. */
  fetch?: ClientPlatform['fetch']
  /** Limit of one call, ms; 20,000 by default. */
  timeoutMs?: number
  /** Replaces time and randomness, for tests. */
  platform?: Partial<ClientPlatform>
}

interface AgentCallOptions {
  /** Aborts the call, which then throws the reason. The agent may still execute the request. */
  signal?: AbortSignal
  /** Limit of this call, ms. */
  timeoutMs?: number
  /** Session of the operator who approves the request, from `signIn`. */
  session?: string
}

/** A device in the agent's status. */
type AgentDevice = AgentAnswer<'status'>['devices'][number]
/** An operator of the store. */
type AgentOperator = AgentAnswer<'operators'>['operators'][number]

/**
 * Client of one agent. Each call sends one request and never retries, because a device may have moved although the
 * response was lost. A rejected request throws an `AgentError` with `code`, `field` and `fix`.
 */
export interface AgentClient {
  /**
   * Requests a release from a device and waits for the outcome. A denial is a response with a `reason`.
   *
   * @example
   * const answer = await agent.authorize({ deviceId, protectionAction: 'deactivate_label', receipt })
   * if (answer.authorized && answer.outcome === 'confirmed') console.log('released')
   * else console.log('not released:', answer.reason ?? answer.outcome)
   *
   * @example
   * try {
   *   await agent.authorize({ deviceId, protectionAction: 'detach_hard_tag', epc: 'no hex' })
   * } catch (error) {
   *   if (!(error instanceof AgentError)) throw error
   *   console.log(error.code, error.field, error.fix)
   * }
   */
  authorize(request: AgentRequest<'authorize'>, options?: AgentCallOptions): Promise<AgentAnswer<'authorize'>>

  /**
   * Records a sale of a till. Send it again if the answer was lost: it is recorded once.
   *
   * @example
   * const sold = await agent.recordSale({
   *   saleId: '4711',
   *   tillId: 'till-3',
   *   occurredAt: new Date().toISOString(),
   *   lines: [{ name: 'Jacke', quantity: 1, priceUnit: 8990, vat: 19, epcs: ['3034257BF7194E4000001A85'] }],
   * })
   * for (const { message } of sold.warnings) console.log(message)
   */
  recordSale(request: AgentRequest<'recordSale'>, options?: AgentCallOptions): Promise<AgentAnswer<'recordSale'>>

  /**
   * Voids a sale of a till: its tags alarm again.
   *
   * @example
   * const { items } = await agent.voidSale({ saleId: '4711', tillId: 'till-3' })
   * for (const { tag, itemStatus } of items) console.log(tag, itemStatus)
   */
  voidSale(request: AgentRequest<'voidSale'>, options?: AgentCallOptions): Promise<AgentAnswer<'voidSale'>>

  /**
   * Records goods that came back to a till: their tags alarm again.
   *
   * @example
   * const back = await agent.recordReturn({ returnId: 'R-1', epcs: ['3034257BF7194E4000001A85'] })
   * console.log(back.synced)
   */
  recordReturn(request: AgentRequest<'recordReturn'>, options?: AgentCallOptions): Promise<AgentAnswer<'recordReturn'>>

  /**
   * Handles a scanned text as the scanner of the device would: a receipt, a tag, a badge or a pick-up code.
   *
   * @example
   * const result = await agent.scan({ deviceId, text: receipt })
   * if (result.kind === 'decision') console.log(result.answer.authorized)
   * if (result.kind === 'not_understood') console.log(result.why)
   */
  scan(request: AgentRequest<'scan'>, options?: AgentCallOptions): Promise<AgentAnswer<'scan'>>

  /**
   * Returns the state of the agent: connection, clock, policy and devices.
   *
   * @example
   * const { online, fault } = await agent.status()
   * console.log(online ? 'online' : 'offline', fault ?? 'no fault')
   */
  status(options?: AgentCallOptions): Promise<AgentAnswer<'status'>>

  /**
   * Lists the devices of the agent with their state.
   *
   * @example
   * for (const device of await agent.devices()) console.log(device.deviceId, device.state, device.detail)
   */
  devices(options?: AgentCallOptions): Promise<readonly AgentDevice[]>

  /**
   * Lists the operators of the store.
   *
   * @example
   * const names = (await agent.operators()).map((operator) => operator.name)
   * console.log(names.join(', '))
   */
  operators(options?: AgentCallOptions): Promise<readonly AgentOperator[]>

  /**
   * Opens an operator's session with a PIN or a badge. Send the returned `session` with the requests that the operator
   * approves.
   *
   * @example
   * const { session, name } = await agent.signIn({ operatorId, pin })
   * const approved = await agent.authorize({ deviceId, protectionAction: 'deactivate_label', receipt }, { session })
   * console.log(name, approved.authorized)
   * await agent.signOut({}, { session })
   */
  signIn(request: AgentRequest<'signIn'>, options?: AgentCallOptions): Promise<AgentAnswer<'signIn'>>

  /**
   * Returns the operator who is signed in at a device, or in the session of `options`.
   *
   * @example
   * const { name } = await agent.signedIn({ deviceId })
   * console.log(name ?? 'no operator is signed in')
   */
  signedIn(request: AgentRequest<'signedIn'>, options?: AgentCallOptions): Promise<AgentAnswer<'signedIn'>>

  /**
   * Ends the session in `options`, and signs out the operator at the device.
   *
   * @example
   * await agent.signOut({ deviceId })
   */
  signOut(request: AgentRequest<'signOut'>, options?: AgentCallOptions): Promise<AgentAnswer<'signOut'>>

  /**
   * Returns whether process, ledger and clock of the agent work. Needs no credential.
   *
   * @example
   * const { ok, ledger } = await agent.health()
   * console.log(ok ? 'healthy' : ledger)
   */
  health(options?: AgentCallOptions): Promise<AgentAnswer<'health'>>

  /**
   * Returns whether the agent has a policy and can decide. Needs no credential.
   *
   * @example
   * const { ready, policyVersion } = await agent.readiness()
   * console.log(ready, policyVersion)
   */
  readiness(options?: AgentCallOptions): Promise<AgentAnswer<'readiness'>>

  /**
   * Yields the events of the devices, and reconnects after failures. Begins with `connected` and the current `status`.
   * Each outage yields one `disconnected`; events that happen during the outage are lost. Buffers at most `bufferLimit`
   * events. A full buffer drops the oldest events and counts them in `missed`. Throws if the agent rejects the request,
   * for example for a wrong credential.
   *
   * @example
   * for await (const event of agent.events()) {
   *   if (event.type === 'result' && event.result.kind === 'decision') console.log(event.deviceId, event.result.answer.outcome)
   *   if (event.type === 'disconnected') console.log(event.error.message)
   *   if (event.type === 'status') break
   * }
   */
  events(options?: EventOptions): AsyncGenerator<AgentEvent, void, undefined>
}

type CallName = Exclude<keyof AgentClient, 'devices' | 'events'>

/** Method and path of each call. The compiler compares them with the operations of the agent. */
const CALLS: { readonly [N in CallName]: readonly [AgentOperations[N]['method'], AgentOperations[N]['path']] } = {
  authorize: ['POST', '/v1/authorize'],
  scan: ['POST', '/v1/scan'],
  recordSale: ['POST', '/v1/sales'],
  voidSale: ['POST', '/v1/sales/void'],
  recordReturn: ['POST', '/v1/returns'],
  status: ['GET', '/v1/status'],
  operators: ['GET', '/v1/operators'],
  signIn: ['POST', '/v1/operator'],
  signedIn: ['GET', '/v1/operator'],
  signOut: ['DELETE', '/v1/operator'],
  health: ['GET', '/healthz'],
  readiness: ['GET', '/readyz'],
}
/** Calls whose 503 responses are results, not errors. */
const ANSWERS_503: ReadonlySet<CallName> = new Set(['health', 'readiness'])
/** Default limit of one call, ms. The agent responds within 10 s of its decision. */
const TIMEOUT_MS = 20_000

/**
 * Creates a client of one agent.
 *
 * @example
 * const client = createAgentClient({ baseUrl: 'http://127.0.0.1:8090', credential, timeoutMs: 15_000 })
 * console.log((await client.status()).storeName)
 */
export function createAgentClient(options: AgentClientOptions): AgentClient {
  const platform: ClientPlatform = {
    ...REAL_PLATFORM,
    ...options.platform,
    ...(options.fetch && { fetch: options.fetch }),
  }
  const baseUrl = options.baseUrl.replace(/\/+$/, '')
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS
  const authorization: Record<string, string> =
    options.credential === undefined ? {} : { authorization: `Bearer ${options.credential}` }

  async function call<N extends CallName>(
    name: N,
    request: object,
    own: AgentCallOptions = {},
  ): Promise<AgentAnswer<N>> {
    const [method, path] = CALLS[name]
    const headers: Record<string, string> = { accept: 'application/json', ...authorization }
    if (own.session !== undefined) headers['x-untag-operator'] = own.session
    if (method === 'POST') headers['content-type'] = 'application/json'
    const url = method === 'POST' ? baseUrl + path : `${baseUrl}${path}${queryOf(request)}`
    const init = { method, headers, ...(method === 'POST' && { body: JSON.stringify(request) }) }
    try {
      const sent = { url, init, baseUrl, timeoutMs: own.timeoutMs ?? timeoutMs, signal: own.signal }
      const { response, text } = await exchange(sent, platform)
      const isAnswer = response.ok || (response.status === 503 && ANSWERS_503.has(name))
      if (!isAnswer) throw errorOfAnswer(response.status, response.headers, text, platform.now())
      return objectIn(text, response.status) as AgentAnswer<N>
    } catch (error) {
      throw asAgentError(error)
    }
  }

  return {
    authorize: (request, own) => call('authorize', request, own),
    scan: (request, own) => call('scan', request, own),
    recordSale: (request, own) => call('recordSale', request, own),
    voidSale: (request, own) => call('voidSale', request, own),
    recordReturn: (request, own) => call('recordReturn', request, own),
    status: (own) => call('status', {}, own),
    devices: async (own) => (await call('status', {}, own)).devices,
    operators: async (own) => (await call('operators', {}, own)).operators,
    signIn: (request, own) => call('signIn', request, own),
    signedIn: (request, own) => call('signedIn', request, own),
    signOut: (request, own) => call('signOut', request, own),
    health: (own) => call('health', {}, own),
    readiness: (own) => call('readiness', {}, own),
    events: (own = {}) => followEvents({ baseUrl, headers: authorization, ...own }, platform),
  }
}

function queryOf(request: object): string {
  const parameters = Object.entries(request).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  )
  return parameters.length === 0 ? '' : `?${new URLSearchParams(parameters as [string, string][]).toString()}`
}

function objectIn(text: string, status: number): object {
  try {
    const answer: unknown = JSON.parse(text)
    if (typeof answer === 'object' && answer !== null) return answer
  } catch {
    // The error below reports the cause.
  }
  throw new AgentError(new UntagError('the answer is no JSON object', { status, code: 'bad-answer' }))
}
