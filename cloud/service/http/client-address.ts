import type { Context } from 'hono'
import { networkOf } from '../../platform/foundation/waiting-connections.ts'

/** Address, or IPv6 network, for limits by client address. Uses X-Forwarded-For only if a configured proxy sent it. */
export function clientAddress(c: Context, trustedProxies: readonly string[]): string {
  const incoming = (c.env as { incoming?: { socket?: { remoteAddress?: string } } } | undefined)?.incoming
  const peer = (incoming?.socket?.remoteAddress ?? 'unknown').replace(/^::ffff:/, '')
  if (!trustedProxies.includes(peer)) return networkOf(peer)
  const forwarded = c.req.header('x-forwarded-for')?.split(',').at(-1)?.trim()
  return networkOf(forwarded && forwarded.length <= 45 ? forwarded : peer)
}
