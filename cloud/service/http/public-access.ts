import type { Context } from 'hono'
import { newId } from '../../../policy/ids.ts'
import { ERROR_STATUS, Failure } from '../../platform/foundation/failure.ts'
import { errorBody } from '../../platform/operations/validation.ts'
import type { Services } from '../../platform/operations/operation.ts'
import { sharedRateLimiter, type Allowance, type RateLimiter } from './rate-limit.ts'
import type { PageRenderer } from './page.tsx'
import { networkOf } from '../../platform/foundation/waiting-connections.ts'

/** Limit by address for public pages. */
const PAGE_ALLOWANCE: Allowance = { perSecond: 10, burst: 30 }

/** Rate limits and error responses of routes that need no key. */
export class PublicAccess {
  readonly #services: Services
  readonly #readers: Pick<PageRenderer, 'problemForBrowser'>
  readonly #limiter: RateLimiter

  constructor(services: Services, readers: Pick<PageRenderer, 'problemForBrowser'>) {
    this.#services = services
    this.#readers = readers
    this.#limiter = sharedRateLimiter('pages', services)
  }

  /**
   * True if the address has sent more requests than its allowance. Each `bucket` has its own limit, because shoppers
   * and agents may share an address.
   */
  isTooFast(c: Context, bucket = '', allowance = PAGE_ALLOWANCE): boolean {
    const { rateLimit, trustedProxies } = this.#services.config
    if (rateLimit === 0) return false
    return !this.#limiter.take(`${bucket}${clientAddress(c, trustedProxies)}`, allowance).allowed
  }

  /** Answers with a page for browsers and with JSON for all other clients. */
  refuse(c: Context, failure: Failure): Response {
    const requestId = newId('req', this.#services.platform)
    const page = this.#readers.problemForBrowser(c, failure, requestId)
    if (page) return page
    const { retryAfter } = failure.extras
    const headers = {
      ...JSON_HEADERS,
      'x-request-id': requestId,
      ...(retryAfter !== undefined && { 'retry-after': String(retryAfter) }),
    }
    return c.json(errorBody(failure, requestId), ERROR_STATUS[failure.code], headers)
  }

  /** Answers 429. */
  refuseTooFast(c: Context): Response {
    return this.refuse(c, tooManyRequests())
  }
}

/** The failure of a client that sent more requests than its allowance. */
export function tooManyRequests(): Failure {
  return new Failure('resource-exhausted', 'too many requests', { retryAfter: 1 })
}

/** Headers of JSON responses: no caching and no sniffing of the type. */
export const JSON_HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const

/** Address, or IPv6 network, for limits by client address. Uses X-Forwarded-For only if a configured proxy sent it. */
export function clientAddress(c: Context, trustedProxies: readonly string[]): string {
  const incoming = (c.env as { incoming?: { socket?: { remoteAddress?: string } } } | undefined)?.incoming
  const peer = (incoming?.socket?.remoteAddress ?? 'unknown').replace(/^::ffff:/, '')
  if (!trustedProxies.includes(peer)) return networkOf(peer)
  const forwarded = c.req.header('x-forwarded-for')?.split(',').at(-1)?.trim()
  return networkOf(forwarded && forwarded.length <= 45 ? forwarded : peer)
}
