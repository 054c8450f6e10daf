import type { Context } from 'hono'
import { newId } from '../../policy/ids.ts'
import { spellingHint } from '../../policy/spelling-hint.ts'
import { errorBody, type ErrorBody } from '../operations/error-body.ts'
import { ERROR_STATUS, Failure } from '../foundation/failure.ts'
import { readIdempotencyKey } from '../operations/idempotency.ts'
import type { Operation, Services } from '../operations/operation.ts'
import type { OperationRequest } from '../operations/call-context.ts'
import { perform } from '../operations/perform.ts'
import { performStream } from '../operations/perform-stream.ts'
import type { ReportProgress } from '../operations/perform-steps.ts'
import type { Database } from '../persistence/database.ts'
import { asFailure } from './as-failure.ts'
import { authenticate } from './authentication.ts'
import { bodyRoom } from './body-room.ts'
import { readJsonBody } from './body.ts'
import { corsHeaders } from './cors.ts'
import { clientAddress } from './client-address.ts'
import { streamProgress } from './event-stream.ts'
import { JSON_HEADERS } from './json-headers.ts'
import { isMultipart, readMultipart } from './multipart.ts'
import type { OperationLimits } from './operation-limits.ts'
import { pickCaller, type AuthenticatedCaller } from './pick-caller.ts'
import type { PageRenderer } from './page-renderer.ts'
import { streamResponse } from './stream-response.ts'

/**
 * Handles requests to operations. Never rejects. Makes these checks in this order (ADR 0003): key (401), name of the
 * operation (404), rate limit (429), kind of key (403), form of the body (413, 415, 400). `perform` then checks the
 * fields (400) and the package (403).
 */
export type ApiHandler = (c: Context, name: string) => Promise<Response>

const FORMS: Record<string, 'post' | 'get'> = { POST: 'post', GET: 'get' }

/**
 * One HTTP request to an operation. Each response, also an error, gets `headers`. The checks of a request may add
 * headers.
 */
interface Incoming {
  c: Context
  name: string
  requestId: string
  headers: Record<string, string>
  /** Gives back the room of the body. */
  release?: () => void
}

/** The operation that a request names, and the form in which it is called. */
interface Called {
  operation: Operation
  form: 'post' | 'get'
  /** True if the request uses the legacy GET form, `operation.get`. */
  isLegacyForm: boolean
}

/** Creates the handler for `{base}/{operation}`, for every operation of the table. */
export function apiHandler(
  operations: ReadonlyMap<string, Operation>,
  database: Database,
  services: Services,
  readers: Pick<PageRenderer, 'problemForBrowser'>,
  limits: OperationLimits,
): ApiHandler {
  const handler = new OperationHandler(operations, database, services, readers, limits)
  return (c, name) => handler.answer(c, name)
}

class OperationHandler {
  readonly #operations: ReadonlyMap<string, Operation>
  readonly #database: Database
  readonly #services: Services
  readonly #readers: Pick<PageRenderer, 'problemForBrowser'>
  readonly #limits: OperationLimits
  readonly #takeRoom = bodyRoom()

  constructor(
    operations: ReadonlyMap<string, Operation>,
    database: Database,
    services: Services,
    readers: Pick<PageRenderer, 'problemForBrowser'>,
    limits: OperationLimits,
  ) {
    this.#operations = operations
    this.#database = database
    this.#services = services
    this.#readers = readers
    this.#limits = limits
  }

  async answer(c: Context, name: string): Promise<Response> {
    const requestId = newId('req', this.#services.platform)
    // Sets the CORS headers before the first check, so that web pages can read errors, too.
    const headers: Record<string, string> = {
      ...JSON_HEADERS,
      'x-request-id': requestId,
      ...corsHeaders(this.#operations.get(name), c.req.header('authorization')),
    }
    const incoming: Incoming = { c, name, requestId, headers }
    const { metrics, platform } = this.#services
    const beganMs = platform.clock.elapsed()
    const response = await this.#respond(incoming)
    // Unknown names share one label, because callers could otherwise create any number of labels.
    metrics?.observeRequest(
      this.#operations.has(name) ? name : 'unknown',
      response.status,
      (platform.clock.elapsed() - beganMs) / 1_000,
    )
    return response
  }

  async #respond(incoming: Incoming): Promise<Response> {
    try {
      return await this.#carryOut(await this.#admit(incoming), incoming)
    } catch (error) {
      return this.#refuse(error, incoming)
    } finally {
      incoming.release?.()
    }
  }

  /** Authenticates, applies rate limits and reads the body. Throws a `Failure`. */
  async #admit(incoming: Incoming): Promise<OperationRequest> {
    const { c, name, requestId, headers } = incoming
    const caller = await this.#authenticate(c)
    const { operation, form, isLegacyForm } = findOperation(this.#operations, c.req.method, name, caller)
    const address = clientAddress(c, this.#services.config.trustedProxies)
    this.#limits.take(caller, operation, address, headers)
    if (form === 'post') incoming.release = this.#takeRoom(caller?.accountId ?? address, bodySize(c, operation))
    return {
      operation,
      caller: pickCaller(caller, operation, address),
      input: form === 'get' ? c.req.query() : await readBody(c, operation),
      isLegacyForm,
      idempotencyKey: operation.changes ? readIdempotencyKey(c.req.header('idempotency-key')) : undefined,
      requestId,
    }
  }

  async #authenticate(c: Context): Promise<AuthenticatedCaller | undefined> {
    const { platform, lastSeen, keyUsage } = this.#services
    const nowMs = platform.clock.wall()
    const caller = await authenticate(this.#database, c.req.header('authorization'), nowMs)
    if (caller?.kind === 'agent') lastSeen.note(caller.agentId, nowMs)
    else if (caller && caller.kind !== 'user') keyUsage.note(caller.keyId, nowMs)
    return caller
  }

  async #carryOut(request: OperationRequest, { c, name, requestId, headers }: Incoming): Promise<Response> {
    const [database, services] = [this.#database, this.#services]
    if (request.operation.stream) {
      const streamed = await performStream(request, database, services)
      return streamResponse(streamed, headers, services.platform.timers, (err) =>
        services.log.error({ requestId, operation: name, err }, 'a streamed response was aborted'),
      )
    }
    const carryOut = (report?: ReportProgress) => perform(request, database, services, report)
    const isStream =
      request.operation.steps !== undefined && c.req.header('accept')?.includes('text/event-stream') === true
    const performed = isStream ? await streamProgress(carryOut, asFailure, requestId, headers) : await carryOut()
    if (performed instanceof Response) return performed
    const { status, body, replayed } = performed
    if (replayed) headers['idempotency-replayed'] = 'true'
    // A refusal after a change is stored for repeated requests, like a success.
    if (status >= 400) return errorResponse(c, status, JSON.parse(body) as ErrorBody, headers)
    return new Response(body, { status, headers: { 'content-type': 'application/json', ...headers } })
  }

  #refuse(error: unknown, { c, name, requestId, headers }: Incoming): Response {
    const failure = asFailure(error)
    if (failure.code === 'internal')
      this.#services.log.error({ requestId, operation: name, err: error }, 'an operation failed')
    const retryAfter = failure.extras.retryAfter
    if (retryAfter !== undefined) headers['retry-after'] = String(retryAfter)
    const page = c.req.method === 'GET' ? this.#readers.problemForBrowser(c, failure, requestId) : undefined
    if (page) return page
    return errorResponse(c, ERROR_STATUS[failure.code], errorBody(failure, requestId), headers)
  }
}

/** Answers with the Error object, or in the form of RFC 9457 if the client accepts that. */
function errorResponse(c: Context, status: number, body: ErrorBody, headers: Record<string, string>): Response {
  const isProblem = c.req.header('accept')?.includes('application/problem+json') === true
  const problem = { type: 'about:blank', title: body.code, status, detail: body.error, ...body }
  return new Response(JSON.stringify(isProblem ? problem : body), {
    status,
    headers: { 'content-type': isProblem ? 'application/problem+json' : 'application/json', ...headers },
  })
}

/** Finds the operation of a request. A caller without a key gets 401 for every name, unless the operation is public. */
function findOperation(
  operations: ReadonlyMap<string, Operation>,
  method: string,
  name: string,
  caller: AuthenticatedCaller | undefined,
): Called {
  const operation = operations.get(name)
  const form = FORMS[method]
  if (!caller && !operation?.callers.includes('anyone'))
    throw new Failure('unauthenticated', 'send an API key in the header Authorization: Bearer untag_…')
  if (!operation || !form)
    throw new Failure(
      'not-found',
      `there is no operation ${method} ${name.slice(0, 80)}${spellingHint(name, operations.keys())}`,
    )
  const isLegacyForm = form === 'get' && operation.get !== undefined
  if (form === 'get' && !isLegacyForm && !operation.getOnly)
    throw new Failure('not-found', `${name} is called with POST`)
  if (form === 'post' && operation.getOnly) throw new Failure('not-found', `${name} is called with GET`)
  return { operation, form, isLegacyForm }
}

/** Reads the body by its content type, if the operation accepts that type. */
/** Announced size of the body. For a body that announces none, and at most, the limit of the operation. */
function bodySize(c: Context, { multipart, bodyLimit }: Operation): number {
  const limit = multipart && isMultipart(c) ? multipart.limit : bodyLimit
  const announced = c.req.header('content-length') ?? (c.req.header('transfer-encoding') === undefined ? 0 : limit)
  return Math.min(limit, Number(announced))
}

function readBody(c: Context, { multipart, bodyLimit, name }: Operation): Promise<Record<string, unknown>> {
  if (multipart && isMultipart(c)) return readMultipart(c, multipart)
  if (multipart && !multipart.alsoJson)
    throw new Failure(
      'unsupported-media-type',
      `send ${name} as multipart/form-data with the file in "${multipart.fileField}"`,
    )
  return readJsonBody(c, bodyLimit)
}
