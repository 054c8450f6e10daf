import { Failure } from '../../platform/foundation/failure.ts'
import type { Operation, Services } from '../../platform/operations/operation.ts'
import type { AuthenticatedCaller } from './pick-caller.ts'
import { sharedRateLimiter, type Allowance, type RateLimiter, type Verdict } from './rate-limit.ts'

/** Limit by address for operations that anyone may call. */
const PUBLIC_ALLOWANCE: Allowance = { perSecond: 10, burst: 30 }
/** Limit of one publishable key over all addresses. */
const PUBLISHABLE_CEILING: Allowance = { perSecond: 2_000, burst: 4_000 }

/**
 * Pages of the console of one user. A page reads some ten operations. Some tabs that each refresh three parts a second
 * stay below it.
 */
const PAGES: Allowance = { perSecond: 20, burst: 60 }

type NamedVerdict = Verdict & { name: string; allowance: Allowance }

/**
 * Rate limits of operations. Each agent, each user and each key has its own limit. A publishable key also has a limit for each
 * address. For calls without a key, and for operations that anyone may call, each address has its own limit.
 */
export class OperationLimits {
  readonly #config: Services['config']
  readonly #limiter: RateLimiter

  constructor(services: Pick<Services, 'config' | 'platform' | 'siblings'>) {
    this.#config = services.config
    this.#limiter = sharedRateLimiter('operations', services)
  }

  /**
   * Takes one request from the caller's bucket and adds the rate-limit headers to `headers`. Throws 429 when the
   * bucket is empty.
   */
  take(
    caller: AuthenticatedCaller | undefined,
    operation: Operation,
    address: string,
    headers: Record<string, string>,
  ): void {
    if (this.#config.rateLimit === 0) return
    const { name, allowance, remaining, resetSeconds, allowed } = this.#takeFor(caller, operation, address)
    headers['ratelimit-policy'] = `"${name}";q=${allowance.burst};w=${Math.ceil(allowance.burst / allowance.perSecond)}`
    headers['ratelimit'] = `"${name}";r=${remaining};t=${resetSeconds}`
    if (!allowed) throw new Failure('resource-exhausted', 'too many requests', { retryAfter: resetSeconds })
  }

  /**
   * Takes one page of the console from the user's bucket: what the page reads is not counted again. Throws 429 when the
   * bucket is empty.
   */
  takePage(userId: string): void {
    if (this.#config.rateLimit === 0) return
    const { allowed, resetSeconds } = this.#limiter.take(`pages ${userId}`, PAGES)
    if (!allowed) throw new Failure('resource-exhausted', 'too many pages', { retryAfter: resetSeconds })
  }

  #takeFor(caller: AuthenticatedCaller | undefined, operation: Operation, address: string): NamedVerdict {
    const { rateLimit } = this.#config
    const perKey = { perSecond: rateLimit, burst: rateLimit * 2 }
    if (!caller || operation.callers.includes('anyone'))
      return this.#takeFrom('address', `address ${address}`, PUBLIC_ALLOWANCE)
    if (caller.kind === 'agent') return this.#takeFrom('agent', caller.agentId, perKey)
    if (caller.kind === 'user') return this.#takeFrom('user', caller.keyId, perKey)
    if (caller.kind !== 'publishable') return this.#takeFrom('key', caller.keyId, perKey)
    return this.#takePublishable(caller.keyId, address)
  }

  #takePublishable(keyId: string, address: string): NamedVerdict {
    const { publishableRateLimit } = this.#config
    const perAddress = { perSecond: publishableRateLimit, burst: publishableRateLimit * 3 }
    const own = this.#takeFrom('key-address', `${keyId} ${address}`, perAddress)
    // Checks the address first, so that rejected requests of one address do not use up the limit of the key.
    if (!own.allowed) return own
    const ceiling = this.#takeFrom('key', keyId, PUBLISHABLE_CEILING)
    return ceiling.allowed ? own : ceiling
  }

  #takeFrom(name: string, bucket: string, allowance: Allowance): NamedVerdict {
    return { name, allowance, ...this.#limiter.take(bucket, allowance) }
  }
}
