import type { Context } from 'hono'
import { newId } from '../../policy/ids.ts'
import type { AgentCaller, Caller, KeyCaller } from '../foundation/caller.ts'
import { didYouMean } from '../../policy/closest.ts'
import { errorBody } from '../operations/error-body.ts'
import { ERROR_STATUS, Failure } from '../foundation/failure.ts'
import { readIdempotencyKey } from '../operations/idempotency.ts'
import type { Operation, Services } from '../operations/operation.ts'
import { perform } from '../operations/perform.ts'
import { performStream } from '../operations/perform-stream.ts'
import type { Report } from '../operations/perform-steps.ts'
import type { Database } from '../persistence/database.ts'
import { asFailure } from './as-failure.ts'
import { authenticate } from './authentication.ts'
import { readJsonBody } from './body.ts'
import { readableByPages } from './browsers.ts'
import { clientAddress } from './client-address.ts'
import { streamProgress } from './event-stream.ts'
import { JSON_HEADERS } from './json-headers.ts'
import { isMultipart, readMultipart } from './multipart.ts'
import type { Readers } from './readers.ts'
import { streamAnswer } from './stream-answer.ts'
import { rateLimiter, type Allowance, type Verdict } from './rate-limit.ts'

/**
 *   401 ─ unknown operation 404 ─ 429 ─ key not allowed 403 ─ 413, 415, 400 ─ package 403 ─ the rest in `perform`
 *
 * One handler for every operation. Answers a `Response`, never throws.
 */
export type ApiHandler = (c: Context, name: string) => Promise<Response>

/** Operations that anyone may call are limited by address. */
const PUBLIC_ALLOWANCE: Allowance = { perSecond: 10, burst: 30 }
/** All addresses of one publishable key together. */
const PUBLISHABLE_CEILING: Allowance = { perSecond: 2_000, burst: 4_000 }
const FORMS: Record<string, 'post' | 'get'> = { POST: 'post', GET: 'get' }

/** Answers `/v1/{operation}` for every operation of the table. */
export function apiHandler(
  operations: ReadonlyMap<string, Operation>,
  database: Database,
  services: Services,
  readers: Pick<Readers, 'problemForBrowser'>,
): ApiHandler {
  const { config, log, platform } = services
  const limiter = rateLimiter(platform.clock)

  return async (c, name) => {
    const requestId = newId('req', platform)
    const operation = operations.get(name)
    const authorization = c.req.header('authorization')
    // Refusals too, from the first on: a page that is not told why shows its shopper nothing.
    const headers: Record<string, string> = {
      ...JSON_HEADERS,
      'x-request-id': requestId,
      ...readableByPages(operation, authorization),
    }
    try {
      const nowMs = platform.clock.wall()
      const caller = await authenticate(database.reads, authorization, nowMs)
      if (caller?.kind === 'agent') services.lastSeen.note(caller.agentId, nowMs)
      else if (caller) services.keyUsage.note(caller.keyId, nowMs)
      const form = FORMS[c.req.method]
      if (!caller && !operation?.callers.includes('anyone'))
        throw new Failure('unauthenticated', 'an API key is needed: Authorization: Bearer untag_…')
      if (!operation || !form)
        throw new Failure(
          'not-found',
          `there is no operation ${c.req.method} ${name.slice(0, 80)}${didYouMean(name, operations.keys())}`,
        )
      const older = form === 'get' && operation.get !== undefined
      if (form === 'get' && !older && !operation.getOnly) throw new Failure('not-found', `${name} is called with POST`)
      if (form === 'post' && operation.getOnly) throw new Failure('not-found', `${name} is called with GET`)

      const address = clientAddress(c, config.trustedProxies)
      takeFromBucket(caller, operation, address, headers)
      const who: Caller = pickCaller(caller, operation, address)
      const input = form === 'get' ? c.req.query() : await readBody(c, operation)
      const idempotencyKey = operation.changes ? readIdempotencyKey(c.req.header('idempotency-key')) : undefined
      const request = { operation, caller: who, input, older, idempotencyKey, requestId }
      if (operation.stream) {
        return streamAnswer(await performStream(request, database, services), headers, (err) =>
          log.error({ requestId, operation: name, err }, 'an answer was broken off'),
        )
      }
      const carryOut = (report?: Report) => perform(request, database, services, report)
      const isStream = operation.steps !== undefined && c.req.header('accept')?.includes('text/event-stream') === true
      const performed = isStream ? await streamProgress(carryOut, asFailure, requestId, headers) : await carryOut()
      if (performed instanceof Response) return performed
      const { status, body, replayed } = performed
      if (replayed) headers['idempotency-replayed'] = 'true'
      return new Response(body, { status, headers: { 'content-type': 'application/json', ...headers } })
    } catch (error) {
      return refuse(error, c, name, requestId, headers)
    }
  }

  function takeFromBucket(
    caller: KeyCaller | AgentCaller | undefined,
    operation: Operation,
    address: string,
    headers: Record<string, string>,
  ): void {
    if (config.rateLimit === 0) return
    const verdict = takeFor(caller, operation, address)
    headers['ratelimit-policy'] =
      `"${verdict.name}";q=${verdict.allowance.burst};w=${Math.ceil(verdict.allowance.burst / verdict.allowance.perSecond)}`
    headers['ratelimit'] = `"${verdict.name}";r=${verdict.remaining};t=${verdict.resetSeconds}`
    if (!verdict.allowed)
      throw new Failure('resource-exhausted', 'too many requests', { retryAfter: verdict.resetSeconds })
  }

  function takeFor(
    caller: KeyCaller | AgentCaller | undefined,
    operation: Operation,
    address: string,
  ): Verdict & { name: string; allowance: Allowance } {
    const perKey = { perSecond: config.rateLimit, burst: config.rateLimit * 2 }
    if (!caller || operation.callers.includes('anyone')) {
      return { name: 'address', allowance: PUBLIC_ALLOWANCE, ...limiter.take(`address ${address}`, PUBLIC_ALLOWANCE) }
    }
    if (caller.kind === 'agent') return { name: 'agent', allowance: perKey, ...limiter.take(caller.agentId, perKey) }
    if (caller.kind !== 'publishable') return { name: 'key', allowance: perKey, ...limiter.take(caller.keyId, perKey) }
    const perAddress = { perSecond: config.publishableRateLimit, burst: config.publishableRateLimit * 3 }
    const own = limiter.take(`${caller.keyId} ${address}`, perAddress)
    // Whoever has used up their own takes nothing from what is there for everybody.
    const ceiling = own.allowed ? limiter.take(caller.keyId, PUBLISHABLE_CEILING) : undefined
    if (ceiling && !ceiling.allowed) return { name: 'key', allowance: PUBLISHABLE_CEILING, ...ceiling }
    return { name: 'key-address', allowance: perAddress, ...own }
  }

  function refuse(
    error: unknown,
    c: Context,
    name: string,
    requestId: string,
    headers: Record<string, string>,
  ): Response {
    const failure = asFailure(error)
    if (failure.code === 'internal') log.error({ requestId, operation: name, err: error }, 'an operation failed')
    const retryAfter = failure.extras.retryAfter
    if (retryAfter !== undefined) headers['retry-after'] = String(retryAfter)
    const page = c.req.method === 'GET' ? readers.problemForBrowser(c, failure, requestId) : undefined
    if (page) return page
    const status = ERROR_STATUS[failure.code]
    const body = errorBody(failure, requestId)
    if (c.req.header('accept')?.includes('application/problem+json')) {
      const problem = { type: 'about:blank', title: failure.code, status, detail: failure.message, ...body }
      return new Response(JSON.stringify(problem), {
        status,
        headers: { 'content-type': 'application/problem+json', ...headers },
      })
    }
    return new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json', ...headers } })
  }
}

/** The body in the form that it says it has, if the operation takes that. */
function readBody(c: Context, { multipart, bodyLimit, name }: Operation): Promise<Record<string, unknown>> {
  if (multipart && isMultipart(c)) return readMultipart(c, multipart)
  if (multipart && !multipart.alsoJson)
    throw new Failure(
      'unsupported-media-type',
      `send ${name} as multipart/form-data with the file in "${multipart.fileField}"`,
    )
  return readJsonBody(c, bodyLimit)
}

/** Whose hands the operation is in: 403 for a key of a kind that may not call it. */
function pickCaller(caller: KeyCaller | AgentCaller | undefined, operation: Operation, address: string): Caller {
  if (operation.callers.includes('anyone') && !operation.callers.includes(caller?.kind ?? 'anyone'))
    return { kind: 'anyone', address }
  if (!caller) return { kind: 'anyone', address }
  if (operation.callers.includes(caller.kind)) return caller
  const reason = `${caller.kind}_not_allowed`
  throw new Failure(
    'permission-denied',
    `${operation.name} cannot be called with ${caller.kind === 'agent' ? "an agent's login" : `a ${caller.kind} key`}`,
    { reason },
  )
}
