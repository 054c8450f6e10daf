import { UntagError } from './error.ts'
import type { ClientPlatform } from './platform.ts'
import type { z } from 'zod'
import type { Operations } from '../../cloud/service/operation-table.ts'

/** Request and response types of the operations, from the declarations that the cloud serves. */

export type OperationName = keyof Operations

/** Replaces the files of a multipart request by `Blob`. */
type Sendable<T> = { [K in keyof T]: FileOr<T[K]> }
type FileOr<F> =
  NonNullable<F> extends { readonly name: string; readonly bytes: Uint8Array } ? Blob | Exclude<F, NonNullable<F>> : F

export type RequestOf<N extends OperationName> = Sendable<z.input<Operations[N]['request']>>
export type AnswerOf<N extends OperationName> = z.output<Operations[N]['response']>

/** Formats of text exports. */
type TextFormat = 'csv' | 'ndjson'

/** Text formats of an operation; `never` if it has none. */
export type TextFormatOf<N extends OperationName> =
  RequestOf<N> extends { format?: infer F } ? Extract<F, TextFormat> : never
/** Requests with a text response, and those with a JSON response. */
export type TextRequestOf<N extends OperationName> = Omit<RequestOf<N>, 'format'> & { format: TextFormatOf<N> }
export type JsonRequestOf<N extends OperationName> = [TextFormatOf<N>] extends [never]
  ? RequestOf<N>
  : Omit<RequestOf<N>, 'format'> & {
      format?: RequestOf<N> extends { format?: infer F } ? Exclude<F, TextFormat> : never
    }

type ListName<A> = {
  [K in keyof A]-?: K extends 'warnings' | 'errors' ? never : NonNullable<A[K]> extends readonly unknown[] ? K : never
}[keyof A]

/** Operations with several pages. */
export type PagedName = {
  [N in OperationName]: AnswerOf<N> extends { nextCursor?: string | undefined } ? N : never
}[OperationName]

/** Item type of a paged operation. */
export type ItemOf<N extends PagedName> = AnswerOf<N>[ListName<AnswerOf<N>>] extends infer List
  ? NonNullable<List> extends readonly (infer Item)[]
    ? Item
    : never
  : never

/** How the client sends each operation. A test compares this with the table of operations. */

/** Names of operations that only read. The client sends an Idempotency-Key with all other operations. */
const READ_NAME = /^(?:fetch|search|get|export|simulate)[A-Z]/
/** Operations that change data although their names match `READ_NAME`. */
const WRITES_DESPITE_NAME: ReadonlySet<string> = new Set(['fetchSignedDocuments', 'getLoyaltyWebhookEvents'])
const READS_DESPITE_NAME: ReadonlySet<string> = new Set([
  'verifyPickupCode',
  'generateReceiptQR',
  'generateReceiptWithQR',
  'generateCodes',
])
const GET_ONLY: ReadonlySet<string> = new Set(['getReceiptFromToken'])

/** True if the call needs an Idempotency-Key. An unnecessary key is harmless. */
export function mayChange(operation: string): boolean {
  return WRITES_DESPITE_NAME.has(operation) || !(READ_NAME.test(operation) || READS_DESPITE_NAME.has(operation))
}

/** True if the operation uses GET. */
export function isGet(operation: string): boolean {
  return GET_ONLY.has(operation)
}

/** True if the text has the form of an operation name. */
export function isOperationName(name: unknown): name is string {
  return typeof name === 'string' && /^[a-z][A-Za-z0-9]{2,63}$/.test(name)
}

/** One HTTP request with its limits. */
interface Exchange {
  readonly url: string
  readonly init: RequestInit
  /** Address that error messages name. */
  readonly baseUrl: string
  /** Timeout of the whole response, ms. */
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
}

/** Maximum size of a response, bytes. */
const ANSWER_LIMIT = 64 * 1024 * 1024

/** Sends a request once and reads the response. Throws an `UntagError`, or the signal's reason. */
export async function exchange(
  { url, init, baseUrl, timeoutMs, signal }: Exchange,
  platform: ClientPlatform,
): Promise<{ response: Response; text: string }> {
  signal?.throwIfAborted()
  const ending = new AbortController()
  let isLate = false
  const cancel = platform.after(timeoutMs, () => {
    isLate = true
    ending.abort()
  })
  const stop = () => ending.abort()
  signal?.addEventListener('abort', stop, { once: true })
  try {
    const response = await platform.fetch(url, { ...init, signal: ending.signal, redirect: 'error' })
    const announced = Number(response.headers.get('content-length') ?? 0)
    if (announced > ANSWER_LIMIT) throw tooLarge(response)
    return { response, text: await textOf(response, ending.signal) }
  } catch (error) {
    if (error instanceof UntagError) throw error
    if (signal?.aborted === true) throw signal.reason
    if (isLate)
      throw new UntagError(`no answer within ${timeoutMs} ms`, { status: 0, code: 'timeout' }, { cause: error })
    throw unreachable(baseUrl, error)
  } finally {
    cancel()
    signal?.removeEventListener('abort', stop)
  }
}

/** Reads a body without an announced size, too, only up to the limit, and only until the signal aborts. */
export async function textOf(response: Response, signal: AbortSignal): Promise<string> {
  const reader = response.body?.getReader()
  if (!reader) return ''
  // Some `fetch` implementations do not end the body when the signal aborts.
  const stop = () => void reader.cancel().catch(() => undefined)
  signal.addEventListener('abort', stop, { once: true })
  const text = await textFrom(reader, response).finally(() => signal.removeEventListener('abort', stop))
  signal.throwIfAborted()
  return text
}

async function textFrom(reader: ReadableStreamDefaultReader<Uint8Array>, response: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let size = 0
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    size += part.value.length
    if (size > ANSWER_LIMIT) {
      await reader.cancel()
      throw tooLarge(response)
    }
    text += decoder.decode(part.value, { stream: true })
  }
  return text + decoder.decode()
}

function tooLarge({ status }: Response): UntagError {
  return new UntagError('the answer is too large', { status, code: 'bad-answer' })
}

/** Error of a connection that failed or broke. */
export function unreachable(baseUrl: string, error: unknown): UntagError {
  return new UntagError(
    `${baseUrl} cannot be reached: ${causeOf(error)}`,
    { status: 0, code: 'network' },
    { cause: error },
  )
}

function causeOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause as { code?: string; message?: string } | undefined) : undefined
  return cause?.code ?? cause?.message ?? (error instanceof Error ? error.message : String(error))
}
