import type { Context } from 'hono'

interface NodeEnv {
  incoming?: { socket?: { remoteAddress?: string } }
  outgoing?: { destroy(): void }
}

function nodeOf(c: Context): NodeEnv | undefined {
  return c.env as NodeEnv | undefined
}

/** The address that the request came from. */
export function addressOf(c: Context): string | undefined {
  return nodeOf(c)?.incoming?.socket?.remoteAddress
}

/** Whether the request came from the agent's own machine. */
export function isLoopback(c: Context): boolean {
  // Calls within the process, as in tests, have no socket. The sender reset a socket without an address: its origin is unknown.
  if (nodeOf(c)?.incoming === undefined) return true
  const address = addressOf(c) ?? ''
  return address === '::1' || /^(::ffff:)?127\./.test(address)
}

/** The connection's response, where Node's HTTP server carries the request. */
export function connectionOf(c: Context): { destroy(): void } | undefined {
  return nodeOf(c)?.outgoing
}
