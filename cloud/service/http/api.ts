import type { Context } from 'hono'
import { newId } from '../../../policy/ids.ts'
import { spellingHint } from '../../../policy/fold-text.ts'
import { errorBody, type ErrorBody, type StreamedResponse } from '../../platform/operations/validation.ts'
import { ERROR_STATUS, Failure } from '../../platform/foundation/failure.ts'
import { readIdempotencyKey } from '../../platform/operations/idempotency.ts'
import type { Operation, Services } from '../../platform/operations/operation.ts'
import type { OperationRequest, OperationResult } from '../../platform/operations/call-context.ts'
import { perform, performStream } from '../../platform/operations/perform.ts'
import type { ReportProgress } from '../../platform/operations/perform-steps.ts'
import type { Database } from '../../platform/persistence/database.ts'
import { asFailure } from './as-failure.ts'
import { authenticate } from './authentication.ts'
import { fairTurns } from '../../platform/persistence/fair-turns.ts'
import { announcedSize, readJsonBody, type InTurn, type TakeRoom } from './body.ts'
import { corsHeaders } from './cors.ts'
import { clientAddress, JSON_HEADERS } from './public-access.ts'
import { isMultipart, readMultipart } from './multipart.ts'
import type { OperationLimits } from './operation-limits.ts'
import { pickCaller, type AuthenticatedCaller } from './pick-caller.ts'
import type { PageRenderer } from './page.tsx'
import type { Timers } from '../../../policy/platform.ts'

/**
 * Maximum number of reports that wait for a slow client. If more would wait, reports are dropped, because each report
 * replaces the previous one.
 */
const WAITING_LIMIT = 16

/**
 * Runs work and streams its progress as server-sent events: some `progress` events, then `result` or `error`. If the
 * work ends before its first report, the response is an ordinary response. A disconnected client does not stop the
 * work.
 */
async function streamProgress(
  work: (report: ReportProgress) => Promise<OperationResult>,
  asFailure: (error: unknown) => Failure,
  requestId: string,
  headers: Readonly<Record<string, string>>,
): Promise<Response | OperationResult> {
  const encoder = new TextEncoder()
  const reports: string[] = []
  let sink: ReadableStreamDefaultController<Uint8Array> | undefined
  let started: () => void = () => undefined
  const first = new Promise<'progress'>((resolve) => (started = () => resolve('progress')))
  const send = (event: string, data: string) => {
    const text = `event: ${event}\ndata: ${data}\n\n`
    if (sink) {
      if ((sink.desiredSize ?? 0) > -WAITING_LIMIT || event !== 'progress') sink.enqueue(encoder.encode(text))
    } else if (reports.push(text) > WAITING_LIMIT) reports.shift()
  }
  const ended = work((report) => {
    send('progress', JSON.stringify(report))
    started()
  })
  // The work ended before its first report, so the response is not a stream.
  if ((await Promise.race([first, ended.then(() => 'ended' as const)])) === 'ended') return ended

  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      sink = controller
      for (const text of reports) controller.enqueue(encoder.encode(text))
      void ended
        .then(
          (performed) => send('result', performed.body),
          (error: unknown) => send('error', JSON.stringify(errorBody(asFailure(error), requestId))),
        )
        .finally(() => {
          const open = sink
          sink = undefined
          open?.close()
        })
        // The client has disconnected.
        .catch(() => undefined)
    },
    cancel() {
      sink = undefined
    },
  })
  return new Response(body, {
    status: 200,
    headers: { ...headers, 'content-type': 'text/event-stream', 'cache-control': 'no-store' },
  })
}

/** Maximum time that a client takes for one part, ms. A part has at most some hundred kilobytes. */
const PART_MS = 60_000

/**
 * Sends a response part by part. Produces the next part only when the client has received the previous parts. Cuts a
 * client that takes too long for a part. Calls `close` once when the response ends in any way.
 */
export function streamResponse(
  { contentType, fileName, chunks, close }: StreamedResponse & { close(): void },
  headers: Readonly<Record<string, string>>,
  timers: Timers,
  onFailure: (error: unknown) => void,
): Response {
  const encoder = new TextEncoder()
  const parts = chunks[Symbol.asyncIterator]()
  /** True if the response has ended: all is sent, or the client has left. This may happen while a part is produced. */
  let isOver = false
  let stopWaiting = () => {}

  async function end(): Promise<void> {
    if (isOver) return
    isOver = true
    stopWaiting()
    close()
    await parts.return?.()
  }

  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        stopWaiting()
        try {
          const part = await parts.next()
          if (isOver) return
          if (part.done === true) {
            controller.close()
            return await end()
          }
          stopWaiting = timers.after(PART_MS, () => {
            controller.error(new Error('the client reads too slowly'))
            void end()
          })
          controller.enqueue(encoder.encode(part.value))
        } catch (error) {
          onFailure(error)
          if (!isOver) controller.error(error)
          await end()
        }
      },
      cancel: end,
    },
    { highWaterMark: 1 },
  )
  const disposition = fileName === undefined ? {} : { 'content-disposition': `attachment; filename="${fileName}"` }
  return new Response(body, {
    status: 200,
    headers: { ...headers, ...disposition, 'content-type': contentType, 'cache-control': 'no-store' },
  })
}

/**
 * Handles requests to operations. Never rejects. Makes these checks in this order (ADR requests): key (401), name of the
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
  takeRoom: TakeRoom,
): ApiHandler {
  const handler = new OperationHandler(operations, database, services, readers, limits, takeRoom)
  return (c, name) => handler.answer(c, name)
}

class OperationHandler {
  readonly #operations: ReadonlyMap<string, Operation>
  readonly #database: Database
  readonly #services: Services
  readonly #readers: Pick<PageRenderer, 'problemForBrowser'>
  readonly #limits: OperationLimits
  readonly #takeRoom: TakeRoom
  readonly #largeBodies: ReturnType<typeof fairTurns>

  constructor(
    operations: ReadonlyMap<string, Operation>,
    database: Database,
    services: Services,
    readers: Pick<PageRenderer, 'problemForBrowser'>,
    limits: OperationLimits,
    takeRoom: TakeRoom,
  ) {
    this.#takeRoom = takeRoom
    this.#operations = operations
    this.#database = database
    this.#services = services
    this.#readers = readers
    this.#limits = limits
    this.#largeBodies = fairTurns(services.platform.clock)
  }

  async answer(c: Context, name: string): Promise<Response> {
    const requestId = newId('req', this.#services.platform)
    // Sets the CORS headers before the first check, so that web pages can read errors, too.
    const headers: Record<string, string> = {
      'x-request-id': requestId,
      ...JSON_HEADERS,
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
    // Every user of the shop's app knows its publishable key.
    const holder = caller && caller.kind !== 'publishable' ? caller.accountId : address
    if (form === 'post') incoming.release = this.#takeRoom(holder, bodySize(c, operation))
    return {
      operation,
      caller: pickCaller(caller, operation, address),
      input: form === 'get' ? c.req.query() : await readBody(c, operation, (work) => this.#largeBodies(holder, work)),
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

/** Announced size of the body, at most the limit of the operation. */
function bodySize(c: Context, { multipart, bodyLimit }: Operation): number {
  return announcedSize(c, multipart && isMultipart(c) ? multipart.limit : bodyLimit)
}

/** Reads the body by its content type, if the operation accepts that type. */
function readBody(
  c: Context,
  { multipart, bodyLimit, rows, name }: Operation,
  inTurn: InTurn,
): Promise<Record<string, unknown>> {
  if (multipart && isMultipart(c)) return readMultipart(c, multipart)
  if (multipart && !multipart.alsoJson)
    throw new Failure(
      'unsupported-media-type',
      `send ${name} as multipart/form-data with the file in "${multipart.fileField}"`,
    )
  return readJsonBody(c, bodyLimit, inTurn, rows)
}
