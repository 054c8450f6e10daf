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

export interface CallOptions {
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
export type OperationMethods = { readonly [N in OperationName]: Call<N> }

export interface Client extends OperationMethods {
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
