import type { Context } from 'hono'
import { networkOf } from '../../platform/foundation/waiting-connections.ts'

/** Headers of JSON responses: no caching and no sniffing of the type. */
export const JSON_HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const

/*
 * CORS: web pages of merchants call the API with a publishable key from any origin. The API uses no cookies. So any
 * origin may read responses, and the headers never allow credentials.
 */

/** Address, or IPv6 network, for limits by client address. Uses X-Forwarded-For only if a configured proxy sent it. */
export function clientAddress(c: Context, trustedProxies: readonly string[]): string {
  const incoming = (c.env as { incoming?: { socket?: { remoteAddress?: string } } } | undefined)?.incoming
  const peer = (incoming?.socket?.remoteAddress ?? 'unknown').replace(/^::ffff:/, '')
  if (!trustedProxies.includes(peer)) return networkOf(peer)
  const forwarded = c.req.header('x-forwarded-for')?.split(',').at(-1)?.trim()
  return networkOf(forwarded && forwarded.length <= 45 ? forwarded : peer)
}
