import { UntagError } from './error.ts'
import type { ClientPlatform } from './platform.ts'

export interface RetryRules {
  /** Attempts after the first at most. */
  readonly retries: number
  /** Before the first retry at most, ms; doubled for each further one. */
  readonly baseDelayMs: number
  /** Between two attempts at most, ms. A server that asks for more is not waited for. */
  readonly maxDelayMs: number
}

export const DEFAULT_RETRY: RetryRules = { retries: 3, baseDelayMs: 250, maxDelayMs: 20_000 }

const RETRIED_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504])
const RETRIED_CODES: ReadonlySet<string> = new Set(['network', 'timeout'])
/** An attempt whose answer was lost is still being carried out: its answer comes to whoever asks again with its key. */
const IN_PROGRESS = 'idempotency_in_progress'

function isTransient({ status, code, reason }: UntagError): boolean {
  return RETRIED_STATUSES.has(status) || RETRIED_CODES.has(code) || reason === IN_PROGRESS
}

/** How long to wait before the next attempt, ms; undefined: do not. `attempt` counts from 0. */
export function delayBefore(
  error: UntagError,
  attempt: number,
  rules: RetryRules,
  random: () => number,
): number | undefined {
  if (attempt >= rules.retries || !isTransient(error)) return undefined
  const backoff = random() * Math.min(rules.maxDelayMs, rules.baseDelayMs * 2 ** attempt)
  if (error.retryAfterMs === undefined) return backoff
  // A little later than asked, and not all at once.
  return error.retryAfterMs > rules.maxDelayMs ? undefined : error.retryAfterMs + random() * rules.baseDelayMs
}

/**
 * Does it until it works, until it fails in a way that does not pass, or until the attempts are used up. A signal that is
 * aborted ends the waiting too; its reason is thrown.
 */
export async function withRetries<T>(
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
