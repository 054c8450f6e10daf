import type { Clock } from '../../policy/platform.ts'

/** Requests that a caller may send: `perSecond` on average, `burst` at once. */
export interface Allowance {
  readonly perSecond: number
  readonly burst: number
}

export interface Verdict {
  readonly allowed: boolean
  /** Whole requests left now. */
  readonly remaining: number
  /** Seconds until the next request (rejected) or until the full burst (allowed). */
  readonly resetSeconds: number
}

export interface RateLimiter {
  /** Takes one request from the bucket of `name`. */
  take(name: string, allowance: Allowance): Verdict
}

/**
 * Maximum number of buckets. A new bucket beyond this number replaces the least recently used bucket, whose caller then
 * gets a full bucket.
 */
const BUCKET_LIMIT = 50_000

/** Token buckets in memory. Each process has its own buckets. */
export function rateLimiter(clock: Clock): RateLimiter {
  const buckets = new Map<string, { tokens: number; atMs: number }>()
  return {
    take(name, { perSecond, burst }) {
      const nowMs = clock.elapsed()
      const bucket = buckets.get(name)
      let tokens = bucket ? Math.min(burst, bucket.tokens + ((nowMs - bucket.atMs) * perSecond) / 1_000) : burst
      const allowed = tokens >= 1
      if (allowed) tokens -= 1
      if (bucket) {
        buckets.delete(name)
      } else if (buckets.size >= BUCKET_LIMIT) {
        const oldest = buckets.keys().next().value
        if (oldest !== undefined) buckets.delete(oldest)
      }
      buckets.set(name, { tokens, atMs: nowMs })
      const missing = allowed ? burst - tokens : 1 - tokens
      return {
        allowed,
        remaining: Math.floor(tokens),
        resetSeconds: Math.max(allowed ? 0 : 1, Math.ceil(missing / perSecond)),
      }
    },
  }
}
