import type { Platform, Timers } from '../../../policy/platform.ts'

/** How HTTP is spoken: the real `fetch`, or a simulated network. */
export type Fetch = (
  url: string,
  init: { method: string; headers: Record<string, string>; body?: string; signal: AbortSignal; redirect: 'error' },
) => Promise<FetchAnswer>

export interface FetchAnswer {
  status: number
  /** `onPart` is called whenever something of it has arrived. */
  text(onPart: () => void): Promise<string>
}

export type CloudAnswer =
  | { kind: 'answered'; body: Record<string, unknown> }
  /** The cloud rejected the call: 4xx with error code and reason. */
  | { kind: 'refused'; status: number; code: string; message: string }
  /** No answer in time: the agent decides alone. */
  | { kind: 'unreachable' }

export interface CallLimits {
  /** The server is offline after this silence. */
  timeoutMs: number
  /** Limit for the whole answer while data arrives; absent: `timeoutMs`, because a person waits. */
  totalMs?: number
}

/** An answer is read up to this many characters, and bytes. */
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
      const body: unknown = JSON.parse(text)
      if (typeof body !== 'object' || body === null) return { kind: 'unreachable' }
      if (answer.status === 200) return { kind: 'answered', body: body as Record<string, unknown> }
      const { code, error, reason } = body as { code?: unknown; error?: unknown; reason?: unknown }
      // Whoever answers without our error form is not the cloud: a captive portal, a proxy.
      if (typeof code !== 'string') return { kind: 'unreachable' }
      return {
        kind: 'refused',
        status: answer.status,
        code: typeof reason === 'string' ? reason : code,
        message: String(error),
      }
    } catch {
      return { kind: 'unreachable' }
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

/** Aborts if nothing arrives for a while, and if the whole request takes too long. */
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
