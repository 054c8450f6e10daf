import {
  isOperationName,
  mayChange,
  isGet,
  exchange,
  type AnswerOf,
  type ItemOf,
  type JsonRequestOf,
  type OperationName,
  type PagedName,
  type RequestOf,
  type TextFormatOf,
  type TextRequestOf,
} from './exchange.ts'
import { REAL_PLATFORM, type ClientPlatform } from './platform.ts'
import { UntagError, errorOfAnswer } from './error.ts'

/** A call that can be sent repeatedly. */
interface Outgoing {
  readonly operation: string
  readonly baseUrl: string
  readonly key: string | undefined
  readonly request: Readonly<Record<string, unknown>>
  readonly idempotencyKey: string | undefined
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
}

/** Content types of text exports. */
const TEXT_FORM = /^(?:text\/csv|application\/x-ndjson)\b/i

/** Sends a call once. Returns the JSON, or the text of an export. Throws an `UntagError`, or the signal's reason. */
async function send(call: Outgoing, platform: ClientPlatform): Promise<unknown> {
  const { response, text } = await exchange({ ...call, url: addressOf(call), init: requestOf(call) }, platform)
  if (!response.ok) throw errorOfAnswer(response.status, response.headers, text, platform.now())
  if (TEXT_FORM.test(response.headers.get('content-type') ?? '')) return text
  const requestId = response.headers.get('x-request-id') ?? undefined
  try {
    const answer: unknown = JSON.parse(text)
    if (typeof answer === 'object' && answer !== null) return answer
  } catch {
    // The error below reports the cause.
  }
  throw new UntagError('the response is no JSON object: check that baseUrl is the address of the API', {
    status: response.status,
    code: 'bad-answer',
    requestId,
  })
}

function addressOf({ operation, baseUrl, request }: Outgoing): string {
  if (!isGet(operation)) return `${baseUrl}/${operation}`
  const parameters = Object.entries(request).filter(([, value]) => value !== undefined)
  return `${baseUrl}/${operation}?${new URLSearchParams(parameters.map(([name, value]) => [name, String(value)] as [string, string])).toString()}`
}

function requestOf({ operation, key, request, idempotencyKey }: Outgoing): RequestInit {
  const headers: Record<string, string> = { accept: 'application/json' }
  if (key !== undefined) headers['authorization'] = `Bearer ${key}`
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey
  if (isGet(operation)) return { method: 'GET', headers }
  // `fetch` sets the content type of a form with its boundary.
  if (Object.values(request).some(isFile)) return { method: 'POST', headers, body: formOf(request) }
  headers['content-type'] = 'application/json'
  return { method: 'POST', headers, body: JSON.stringify(request) }
}

function isFile(value: unknown): value is Blob {
  return value instanceof Blob
}

function formOf(request: Readonly<Record<string, unknown>>): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries(request)) {
    if (value === undefined) continue
    if (isFile(value)) form.append(name, value, (value as { name?: string }).name ?? name)
    else form.append(name, typeof value === 'object' ? JSON.stringify(value) : String(value))
  }
  return form
}

type Answer = Readonly<Record<string, unknown>>

/** Arrays that a response may contain beside its list. */
const SIDE_LISTS: ReadonlySet<string> = new Set(['warnings', 'errors'])

/** Yields the items of all pages. Fetches a page only when the caller requests its first item. */
async function* itemsOf(
  fetchPage: (cursor: string | undefined) => Promise<Answer>,
  first?: string,
): AsyncGenerator<unknown, void, undefined> {
  let cursor = first
  do {
    const answer = await fetchPage(cursor)
    yield* listIn(answer)
    const next = typeof answer['nextCursor'] === 'string' ? answer['nextCursor'] : undefined
    if (next !== undefined && next === cursor)
      throw new UntagError('the server returned the same cursor twice', { status: 200, code: 'bad-answer' })
    cursor = next
  } while (cursor !== undefined)
}

/** Returns the only list of a paged response. */
export function listIn(answer: Answer): readonly unknown[] {
  const lists = Object.entries(answer).filter(([name, value]) => Array.isArray(value) && !SIDE_LISTS.has(name))
  const list = lists[0]?.[1]
  if (lists.length !== 1 || !Array.isArray(list))
    throw new UntagError('this operation does not return exactly one list', { status: 200, code: 'bad-answer' })
  return list
}

export { UntagError, type UntagErrorDetail } from './error.ts'
export type { AnswerOf, ItemOf, OperationName, PagedName, RequestOf } from './exchange.ts'
export type { ClientPlatform } from './platform.ts'
export { verifyWebhook, WebhookRefused, type WebhookEvent } from './webhook.ts'

export interface ClientOptions {
  /** API key. Without a key only public operations work. */
  key?: string | undefined
  /** Address of the API root, such as `https://shop.example/api/v1`. */
  baseUrl: string
  /** Timeout of one attempt, ms; 30,000 by default. */
  timeoutMs?: number
  retry?: Partial<RetryRules>
  /** Replaces time, randomness and network, for tests. */
  platform?: Partial<ClientPlatform>
}

interface CallOptions {
  /** Aborts the call, which then throws the reason. */
  signal?: AbortSignal
  /** Timeout of one attempt, ms. */
  timeoutMs?: number
  /** Set this key if you must repeat a call after a crash of your program. By default each call has a new key. */
  idempotencyKey?: string
}

type Call<N extends OperationName> = [TextFormatOf<N>] extends [never] ? JsonCall<N> : JsonCall<N> & TextCall<N>

type JsonCall<N extends OperationName> =
  Partial<JsonRequestOf<N>> extends JsonRequestOf<N>
    ? (request?: JsonRequestOf<N>, options?: CallOptions) => Promise<AnswerOf<N>>
    : (request: JsonRequestOf<N>, options?: CallOptions) => Promise<AnswerOf<N>>

/** An export as text. */
type TextCall<N extends OperationName> = (request: TextRequestOf<N>, options?: CallOptions) => Promise<string>

/** Every operation as a method: `client.fetchProducts({ storeId })`. */
type OperationMethods = { readonly [N in OperationName]: Call<N> }

interface Client extends OperationMethods {
  /**
   * Calls an operation by its name.
   *
   * @example
   * const { stores } = await client.call('fetchStores', {})
   * console.log(stores.length)
   */
  call<N extends OperationName>(operation: N, request: RequestOf<N>, options?: CallOptions): Promise<AnswerOf<N>>
  /**
   * Yields the items of all pages of a listing.
   *
   * @example
   * for await (const store of client.pages('fetchStores', {})) console.log(store.storeId)
   */
  pages<N extends PagedName>(
    operation: N,
    request: RequestOf<N>,
    options?: CallOptions,
  ): AsyncGenerator<ItemOf<N>, void, undefined>
}

const TIMEOUT_MS = 30_000

/**
 * Creates a client of the API. The client sends an Idempotency-Key with calls that change something. The client retries
 * after 429, 502, 503, 504 and network errors. A rejected request throws an `UntagError`.
 *
 * @example
 * const untag = createClient({ baseUrl: 'https://shop.example/api/v1', key })
 * const { stores } = await untag.fetchStores()
 * console.log(stores.map((store) => store.storeId))
 *
 */
export function createClient(options: ClientOptions): Client {
  const platform: ClientPlatform = { ...REAL_PLATFORM, ...options.platform }
  const rules: RetryRules = { ...DEFAULT_RETRY, ...options.retry }
  const baseUrl = options.baseUrl.replace(/\/+$/, '')

  function call(
    operation: string,
    request: Readonly<Record<string, unknown>> = {},
    { signal, timeoutMs, idempotencyKey }: CallOptions = {},
  ): Promise<unknown> {
    const outgoing = {
      operation,
      baseUrl,
      key: options.key,
      request,
      idempotencyKey: idempotencyKey ?? (mayChange(operation) ? platform.unique() : undefined),
      timeoutMs: timeoutMs ?? options.timeoutMs ?? TIMEOUT_MS,
      signal,
    }
    return withRetries(() => send(outgoing, platform), rules, platform, signal)
  }

  function pages(
    operation: string,
    request: Readonly<Record<string, unknown>> = {},
    callOptions: CallOptions = {},
  ): AsyncGenerator<unknown, void, undefined> {
    const { cursor, offset, ...rest } = request
    // The API accepts an offset (first page) or a cursor (later pages), not both.
    const fetchPage = (at: string | undefined) =>
      call(
        operation,
        { ...rest, ...(at === undefined ? offset !== undefined && { offset } : { cursor: at }) },
        callOptions,
      )
    return itemsOf(
      fetchPage as (at: string | undefined) => Promise<Readonly<Record<string, unknown>>>,
      cursor as string | undefined,
    )
  }

  const own: Record<string, unknown> = { call, pages }
  const methods = new Map<string, unknown>()
  // Operation names exist only as types, so the proxy creates a method on first access.
  return new Proxy(own, {
    get(target, name, receiver) {
      // `await client` reads the property `then`, so `then` must not become an operation.
      if (!isOperationName(name) || name === 'then' || Reflect.has(target, name))
        return Reflect.get(target, name, receiver) as unknown
      const method =
        methods.get(name) ??
        ((request?: Record<string, unknown>, callOptions?: CallOptions) => call(name, request, callOptions))
      methods.set(name, method)
      return method
    },
  }) as unknown as Client
}

export interface RetryRules {
  /** Maximum retries. */
  readonly retries: number
  /** Maximum delay before the first retry, ms; it doubles with each retry. */
  readonly baseDelayMs: number
  /** Maximum delay, ms. The call fails if the server requests a longer delay. */
  readonly maxDelayMs: number
}

const DEFAULT_RETRY: RetryRules = { retries: 3, baseDelayMs: 250, maxDelayMs: 20_000 }

const RETRIED_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504])
const RETRIED_CODES: ReadonlySet<string> = new Set(['network', 'timeout'])
/**
 * Reason of a 409: the first attempt with this Idempotency-Key still runs. A retry gets the response of the first
 * attempt.
 */
const IN_PROGRESS = 'idempotency_in_progress'

function isTransient({ status, code, reason }: UntagError): boolean {
  return RETRIED_STATUSES.has(status) || RETRIED_CODES.has(code) || reason === IN_PROGRESS
}

/** Delay before the next attempt, ms; undefined: no retry. `attempt` counts from 0. */
function delayBefore(error: UntagError, attempt: number, rules: RetryRules, random: () => number): number | undefined {
  if (attempt >= rules.retries || !isTransient(error)) return undefined
  const backoff = random() * Math.min(rules.maxDelayMs, rules.baseDelayMs * 2 ** attempt)
  if (error.retryAfterMs === undefined) return backoff
  // Adds jitter, so that not all clients retry at the same time.
  return error.retryAfterMs > rules.maxDelayMs ? undefined : error.retryAfterMs + random() * rules.baseDelayMs
}

/**
 * Retries transient errors until `attempt` succeeds or the retries are exhausted. If the signal aborts, even during a
 * delay, throws the reason of the signal.
 */
async function withRetries<T>(
  attempt: () => Promise<T>,
  rules: RetryRules,
  platform: ClientPlatform,
  signal: AbortSignal | undefined,
): Promise<T> {
  for (let count = 0; ; count++) {
    signal?.throwIfAborted()
    try {
      return await attempt()
    } catch (error) {
      const delay = error instanceof UntagError ? delayBefore(error, count, rules, () => platform.random()) : undefined
      if (delay === undefined) throw error
      await pause(delay, platform, signal)
    }
  }
}

function pause(ms: number, platform: ClientPlatform, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason as Error)
    const stop = () => {
      cancel()
      reject(signal?.reason as Error)
    }
    const cancel = platform.after(ms, () => {
      signal?.removeEventListener('abort', stop)
      resolve()
    })
    return signal?.addEventListener('abort', stop, { once: true })
  })
}
