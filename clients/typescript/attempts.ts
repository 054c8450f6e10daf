import { UntagError } from './error.ts'
import type { ClientPlatform } from './platform.ts'

export interface RetryRules {
  /** Maximum retries. */
  readonly retries: number
  /** Maximum delay before the first retry, ms; it doubles with each retry. */
  readonly baseDelayMs: number
  /** Maximum delay, ms. The call fails if the server requests a longer delay. */
  readonly maxDelayMs: number
}

export const DEFAULT_RETRY: RetryRules = { retries: 3, baseDelayMs: 250, maxDelayMs: 20_000 }

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
