import type { Context } from 'hono'
import { networkOf } from '../foundation/client-network.ts'

/** Where a request came from, as requests are counted: an address, or its network. X-Forwarded-For counts only from proxies that are named in the configuration. */
export function clientAddress(c: Context, trustedProxies: readonly string[]): string {
  const incoming = (c.env as { incoming?: { socket?: { remoteAddress?: string } } } | undefined)?.incoming
  const peer = (incoming?.socket?.remoteAddress ?? 'unknown').replace(/^::ffff:/, '')
  if (!trustedProxies.includes(peer)) return networkOf(peer)
  const forwarded = c.req.header('x-forwarded-for')?.split(',').at(-1)?.trim()
  return networkOf(forwarded && forwarded.length <= 45 ? forwarded : peer)
}
