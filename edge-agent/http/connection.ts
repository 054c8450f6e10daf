import type { Context } from 'hono'

interface NodeEnv {
  incoming?: { socket?: { remoteAddress?: string } }
  outgoing?: { destroy(): void }
}

function nodeOf(c: Context): NodeEnv | undefined {
  return c.env as NodeEnv | undefined
}

/** Address of the sender. */
export function addressOf(c: Context): string | undefined {
  return nodeOf(c)?.incoming?.socket?.remoteAddress
}

/** True if the request comes from the agent's own machine. */
export function isLoopback(c: Context): boolean {
  // A call within the process, as in tests, has no socket. If the sender reset the socket, the sender's address is
  // unknown.
  if (nodeOf(c)?.incoming === undefined) return true
  const address = addressOf(c) ?? ''
  return address === '::1' || /^(::ffff:)?127\./.test(address)
}

/** True if the request came over TLS. */
export function isTls(c: Context): boolean {
  return new URL(c.req.url).protocol === 'https:'
}

/** Node's response object, which can close the connection. Undefined for a call within the process. */
export function connectionOf(c: Context): { destroy(): void } | undefined {
  return nodeOf(c)?.outgoing
}
