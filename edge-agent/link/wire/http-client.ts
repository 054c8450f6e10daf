import type { Platform, Timers } from '../../../policy/platform.ts'
import { parseUntrustedJson } from '../../../policy/untrusted-json.ts'

/** Sends an HTTP request, with the real `fetch` or over a simulated network. */
export type Fetch = (
  url: string,
  init: { method: string; headers: Record<string, string>; body?: string; signal: AbortSignal; redirect: 'error' },
) => Promise<FetchAnswer>

interface FetchAnswer {
  status: number
  /** Reads the body. Calls `onPart` for each part that arrives. */
  text(onPart: () => void): Promise<string>
}

export type CloudAnswer =
  | { kind: 'answered'; body: Record<string, unknown> }
  /** The server rejected the call with an error code. */
  | { kind: 'refused'; status: number; code: string; message: string }
  /** No valid answer in time. `why`: the error of the connection, such as a certificate that is not trusted. */
  | { kind: 'unreachable'; why?: string }

export interface CallLimits {
  /** The server counts as offline if nothing arrives for this time, ms. */
  timeoutMs: number
  /** Time limit for the whole call while data arrives, ms. Absent: `timeoutMs` limits the whole call. */
  totalMs?: number
}

/** Maximum length of an answer, in characters and in bytes. */
export const ANSWER_LIMIT = 4 * 1024 * 1024

export interface HttpClient {
  post(operation: string, body: object, options: CallLimits & { token?: string }): Promise<CloudAnswer>
  get(path: string, timeoutMs: number): Promise<CloudAnswer>
}

/** Calls API operations. Never throws: an invalid or missing answer is `unreachable`. */
export function httpClient(baseUrl: string, fetch: Fetch, platform: Pick<Platform, 'timers'>): HttpClient {
  async function call(
    url: string,
    init: { method: string; headers: Record<string, string>; body?: string },
    limits: CallLimits,
  ): Promise<CloudAnswer> {
    const limit = silenceLimit(platform.timers, limits)
    try {
      const answer = await fetch(url, { ...init, signal: limit.signal, redirect: 'error' })
      const text = await answer.text(limit.received)
      if (text.length > ANSWER_LIMIT) return { kind: 'unreachable' }
      const body = parseUntrustedJson(text)
      if (typeof body !== 'object' || body === null) return { kind: 'unreachable' }
      if (answer.status === 200) return { kind: 'answered', body: body as Record<string, unknown> }
      const { code, error, reason } = body as { code?: unknown; error?: unknown; reason?: unknown }
      // An answer without the error format of untag comes from another server, such as a captive portal or a proxy.
      if (typeof code !== 'string') return { kind: 'unreachable' }
      return {
        kind: 'refused',
        status: answer.status,
        code: typeof reason === 'string' ? reason : code,
        message: String(error),
      }
    } catch (error) {
      return { kind: 'unreachable', why: causeOf(error) }
    } finally {
      limit.done()
    }
  }

  return {
    post: (operation, body, { token, ...limits }) =>
      call(
        `${baseUrl}/${operation}`,
        {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            ...(token !== undefined && { authorization: `Bearer ${token}` }),
          },
          body: JSON.stringify(body),
        },
        limits,
      ),
    get: (path, timeoutMs) => call(`${baseUrl}/${path}`, { method: 'GET', headers: {} }, { timeoutMs }),
  }
}

/** Text of an error. `fetch` only says that it failed, and its cause says why. */
function causeOf(error: unknown): string {
  const cause = error instanceof TypeError && error.cause !== undefined ? error.cause : error
  return cause instanceof Error ? cause.message || cause.name : String(cause)
}

/** Aborts if nothing arrives for `timeoutMs`, or if the whole call takes longer than `totalMs`. */
function silenceLimit(
  timers: Timers,
  { timeoutMs, totalMs }: CallLimits,
): { signal: AbortSignal; received(): void; done(): void } {
  const controller = new AbortController()
  const abortAfter = (ms: number) =>
    timers.after(ms, () => controller.abort(new DOMException(`no answer within ${ms} ms`, 'TimeoutError')))
  let silence = abortAfter(timeoutMs)
  const whole = totalMs === undefined ? undefined : abortAfter(totalMs)
  let isDone = false
  return {
    signal: controller.signal,
    received() {
      if (isDone || !whole) return
      silence()
      silence = abortAfter(timeoutMs)
    },
    done() {
      isDone = true
      silence()
      whole?.()
    },
  }
}
