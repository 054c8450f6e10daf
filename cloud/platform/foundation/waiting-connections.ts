import { networkOf } from './client-network.ts'

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
