import type { Context } from 'hono'

/** The address a request came from; X-Forwarded-For counts only from proxies that are named in the configuration. */
export function clientAddress(c: Context, trustedProxies: readonly string[]): string {
  const incoming = (c.env as { incoming?: { socket?: { remoteAddress?: string } } } | undefined)?.incoming
  const peer = (incoming?.socket?.remoteAddress ?? 'unknown').replace(/^::ffff:/, '')
  if (!trustedProxies.includes(peer)) return peer
  const forwarded = c.req.header('x-forwarded-for')?.split(',').at(-1)?.trim()
  return forwarded && forwarded.length <= 45 ? forwarded : peer
}
