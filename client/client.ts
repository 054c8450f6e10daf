import { DEFAULT_RETRY, withRetries, type RetryRules } from './attempts.ts'
import { isOperationName, mayChange } from './operation-rules.ts'
import type {
  AnswerOf,
  ItemOf,
  JsonRequestOf,
  OperationName,
  PagedName,
  RequestOf,
  TextFormatOf,
  TextRequestOf,
} from './operations.ts'
import { itemsOf } from './pages.ts'
import { REAL_PLATFORM, type ClientPlatform } from './platform.ts'
import { send } from './send.ts'

export { UntagError, type UntagErrorDetail } from './error.ts'
export type { AnswerOf, ItemOf, OperationName, PagedName, RequestOf } from './operations.ts'
export type { ClientPlatform } from './platform.ts'
export type { RetryRules } from './attempts.ts'
export { verifyWebhook, WebhookRefused, type WebhookEvent } from './webhook.ts'

export interface ClientOptions {
  /** API key; without one only operations that need none can be called. */
  key?: string | undefined
  /** Address of the API root, such as `https://shop.example/api/v1`. */
  baseUrl: string
  /** Of one attempt, ms. */
  timeoutMs?: number
  retry?: Partial<RetryRules>
  /** Other time, chance or network. */
  platform?: Partial<ClientPlatform>
}

export interface CallOptions {
  /** Ends the call; its reason is thrown. */
  signal?: AbortSignal
  /** Of one attempt, ms. */
  timeoutMs?: number
  /** One's own, to repeat a call after a crash of this program; else each call has a new one. */
  idempotencyKey?: string
}

type Call<N extends OperationName> = [TextFormatOf<N>] extends [never] ? JsonCall<N> : JsonCall<N> & TextCall<N>

type JsonCall<N extends OperationName> =
  Partial<JsonRequestOf<N>> extends JsonRequestOf<N>
    ? (request?: JsonRequestOf<N>, options?: CallOptions) => Promise<AnswerOf<N>>
    : (request: JsonRequestOf<N>, options?: CallOptions) => Promise<AnswerOf<N>>

/** An export in a format that is no JSON. */
type TextCall<N extends OperationName> = (request: TextRequestOf<N>, options?: CallOptions) => Promise<string>

/** Every operation as a method: `client.fetchProducts({ storeId })`. */
export type OperationMethods = { readonly [N in OperationName]: Call<N> }

export interface Client extends OperationMethods {
  /** An operation by its name. */
  call<N extends OperationName>(operation: N, request: RequestOf<N>, options?: CallOptions): Promise<AnswerOf<N>>
  /** Every item of a listing, over all of its pages. */
  pages<N extends PagedName>(
    operation: N,
    request: RequestOf<N>,
    options?: CallOptions,
  ): AsyncGenerator<ItemOf<N>, void, undefined>
}

const TIMEOUT_MS = 30_000

/**
 * A client of the API. Calls that change something carry an Idempotency-Key, so that repeating them is safe; 429, 503 and
 * broken connections are repeated by themselves. What is refused is thrown as an `UntagError`.
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
    // An offset says where the first page begins; a cursor says it of the others, and the API takes one of them.
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
  // The names of the operations are types alone; a method comes to be when it is asked for.
  return new Proxy(own, {
    get(target, name, receiver) {
      // Whoever awaits the client itself asks for `then`.
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
