import type { Clock } from '../../../policy/platform.ts'
import type { Services } from '../../platform/operations/operation.ts'

/** Requests that a caller may send: `perSecond` on average, `burst` at once. */
export interface Allowance {
  readonly perSecond: number
  readonly burst: number
}

export interface Verdict {
  readonly allowed: boolean
  /** Whole requests left now. */
  readonly remaining: number
  /** If rejected: seconds until the next request is allowed. If allowed: seconds until the full burst is allowed. */
  readonly resetSeconds: number
}

export interface RateLimiter {
  /** Takes one request from the bucket of `name`. */
  take(name: string, allowance: Allowance): Verdict
}

interface LocalLimiter extends RateLimiter {
  /**
   * Takes from the bucket the requests that another process has admitted. The bucket may go below zero, down to
   * `-burst`.
   */
  takeElsewhere(name: string, allowance: Allowance, count: number): void
}

/**
 * Maximum number of buckets. A new bucket beyond this number replaces the least recently used bucket, whose caller then
 * gets a full bucket.
 */
const BUCKET_LIMIT = 50_000

/** Token buckets in memory. */
function rateLimiter(clock: Clock): LocalLimiter {
  const buckets = new Map<string, { tokens: number; atMs: number }>()

  function tokensNow(name: string, { perSecond, burst }: Allowance, nowMs: number): number {
    const bucket = buckets.get(name)
    return bucket ? Math.min(burst, bucket.tokens + ((nowMs - bucket.atMs) * perSecond) / 1_000) : burst
  }

  function store(name: string, tokens: number, nowMs: number): void {
    const isKnown = buckets.delete(name)
    if (!isKnown && buckets.size >= BUCKET_LIMIT) {
      const oldest = buckets.keys().next().value
      if (oldest !== undefined) buckets.delete(oldest)
    }
    buckets.set(name, { tokens, atMs: nowMs })
  }

  return {
    takeElsewhere(name, allowance, count) {
      const nowMs = clock.elapsed()
      store(name, Math.max(-allowance.burst, tokensNow(name, allowance, nowMs) - count), nowMs)
    },
    take(name, allowance) {
      const { perSecond, burst } = allowance
      const nowMs = clock.elapsed()
      let tokens = tokensNow(name, allowance, nowMs)
      const allowed = tokens >= 1
      if (allowed) tokens -= 1
      store(name, tokens, nowMs)
      const missing = allowed ? burst - tokens : 1 - tokens
      return {
        allowed,
        remaining: Math.max(0, Math.floor(tokens)),
        resetSeconds: Math.max(allowed ? 0 : 1, Math.ceil(missing / perSecond)),
      }
    },
  }
}

/**
 * Time between two messages to the other workers, ms. Callers can exceed a limit by at most the requests that they send
 * in this time.
 */
const SHARE_MS = 50

/**
 * Token buckets that the workers of one machine share: each worker sends the others the requests that it has admitted.
 * `name` distinguishes the limiters of a process.
 */
export function sharedRateLimiter(
  name: string,
  { platform, siblings }: Pick<Services, 'platform' | 'siblings'>,
): RateLimiter {
  const limiter = rateLimiter(platform.clock)
  if (!siblings) return limiter
  let taken = new Map<string, { allowance: Allowance; count: number }>()

  function send(): void {
    const list = [...taken].map(
      ([bucket, { allowance, count }]) => [bucket, count, allowance.perSecond, allowance.burst] as const,
    )
    taken = new Map()
    siblings?.send({ kind: 'taken', limiter: name, taken: list })
  }

  function note(bucket: string, allowance: Allowance): void {
    if (taken.size === 0) platform.timers.after(SHARE_MS, send)
    const known = taken.get(bucket)
    if (known) known.count++
    else if (taken.size < BUCKET_LIMIT) taken.set(bucket, { allowance, count: 1 })
  }

  siblings.subscribe((message) => {
    if (message.kind !== 'taken' || message.limiter !== name) return
    for (const [bucket, count, perSecond, burst] of message.taken)
      limiter.takeElsewhere(bucket, { perSecond, burst }, count)
  })
  return {
    take(bucket, allowance) {
      const verdict = limiter.take(bucket, allowance)
      if (verdict.allowed) note(bucket, allowance)
      return verdict
    },
  }
}
