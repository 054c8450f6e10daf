import { type Server, type Socket, isIPv6 } from 'node:net'

/** Number of leading groups of an IPv6 address that form its /64 network. */
const NETWORK_GROUPS = 4
const GROUPS = 8

/**
 * Network to which a limit by client address applies: an IPv4 address, or the /64 network of an IPv6 address. A limit
 * per single IPv6 address would have no effect, because one subscriber owns at least a /64.
 */
export function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '').split('%')[0] ?? ''
  // Each request asks, and the expression of `isIPv6` is long.
  if (!plain.includes(':') || !isIPv6(plain)) return plain
  const [before = '', after] = plain.toLowerCase().split('::')
  const head = groupsOf(before)
  const tail = after === undefined ? [] : groupsOf(after)
  const whole = [...head, ...Array.from({ length: GROUPS - head.length - tail.length }, () => '0'), ...tail]
  return `${whole
    .slice(0, NETWORK_GROUPS)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`
}

/**
 * The last two groups may be written as IPv4. Replaces these groups by zeros, because they are not part of the network.
 */
function groupsOf(text: string): string[] {
  return text === '' ? [] : text.split(':').flatMap((group) => (group.includes('.') ? ['0', '0'] : [group]))
}

/**
 * Calls `onRaw` for each new connection of a TLS server. The function that `onRaw` returns is called when the handshake
 * is complete or the connection closes. Node.js has another socket object after the handshake, so the remote port
 * identifies the connection. The returned function cuts all connections whose handshake is not complete.
 */
export function watchHandshakes(server: Server, onRaw: (socket: Socket) => () => void): () => void {
  const handshakes = new Map<string, { socket: Socket; end(): void }>()
  server.on('connection', (socket: Socket) => {
    const name = nameOf(socket)
    const handshake = { socket, end: onRaw(socket) }
    handshakes.set(name, handshake)
    socket.once('close', () => {
      handshake.end()
      if (handshakes.get(name) === handshake) handshakes.delete(name)
    })
  })
  server.on('secureConnection', (socket: Socket) => {
    handshakes.get(nameOf(socket))?.end()
    handshakes.delete(nameOf(socket))
  })
  return () => {
    for (const { socket } of handshakes.values()) socket.destroy()
  }
}

function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress ?? ''} ${remotePort ?? ''}`
}

/**
 * Backlog of the listening socket. With a smaller backlog, a burst drops SYN packets, which costs a caller 1 s. With a
 * larger backlog, callers wait longer.
 */
export const BACKLOG = 1_024

/** Connections of callers that are not authenticated yet. */
export interface WaitingConnections {
  /**
   * Adds a connection from `address`. If too many connections of this network wait, cuts the oldest of them. If too
   * many connections wait in total, cuts the oldest connection of the network with the most waiting connections. Call
   * the returned function when the client is authenticated or disconnected.
   */
  add(address: string, cut: () => void): () => void
}

/**
 * Connections wait until they are authenticated or their request is complete. If too many wait, the network with the
 * most waiting connections loses its oldest connection. So one network cannot displace the connections of another
 * network.
 */
export function waitingConnections(limit: { most: number; mostOfNetwork: number }): WaitingConnections {
  const networks = new Map<string, Set<() => void>>()
  let count = 0

  function remove(network: string, cut: () => void): void {
    const waiting = networks.get(network)
    if (!waiting?.delete(cut)) return
    count--
    if (waiting.size === 0) networks.delete(network)
  }

  function largest(): string {
    let found = ''
    for (const [network, waiting] of networks) if (waiting.size > (networks.get(found)?.size ?? 0)) found = network
    return found
  }

  function cutOldestOf(network: string): void {
    const [oldest] = networks.get(network) ?? []
    if (!oldest) return
    remove(network, oldest)
    oldest()
  }

  return {
    add(address, cut) {
      const network = networkOf(address)
      // Wraps `cut`, because a set would store the same function only once.
      const own = () => cut()
      networks.set(network, (networks.get(network) ?? new Set()).add(own))
      count++
      if ((networks.get(network)?.size ?? 0) > limit.mostOfNetwork) cutOldestOf(network)
      else if (count > limit.most) cutOldestOf(largest())
      return () => remove(network, own)
    },
  }
}
