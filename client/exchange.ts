import { UntagError } from './error.ts'
import type { ClientPlatform } from './platform.ts'

/** One HTTP request with its limits. */
export interface Exchange {
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
    if (announced > ANSWER_LIMIT)
      throw new UntagError('the answer is too large', { status: response.status, code: 'bad-answer' })
    return { response, text: await response.text() }
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
