import { networkOf } from './client-network.ts'

/**
 * Connections that the kernel accepts ahead. With fewer, a burst costs a caller its first packet, and the next one comes a
 * second later; with more, the caller waits behind them for longer.
 */
export const BACKLOG = 1_024

/** Connections of callers that are unknown so far. */
export interface WaitingConnections {
  /** Adds a connection from `address`, which may cost another one its place. Call the result when the caller is known, or gone. */
  add(address: string, cut: () => void): () => void
}

/**
 *   connect ─▶ waiting ─▶ authenticated, or its request is complete ─▶ out of here
 *                 └─ too many: the oldest connection of the network with the most waiting ones is cut
 *
 * A caller that goes on at once keeps its place, however many sockets others open and leave idle: a network that opens
 * many loses its own.
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
      // An own function for each: the same one may be passed twice.
      const own = () => cut()
      networks.set(network, (networks.get(network) ?? new Set()).add(own))
      count++
      if ((networks.get(network)?.size ?? 0) > limit.mostOfNetwork) cutOldestOf(network)
      else if (count > limit.most) cutOldestOf(largest())
      return () => remove(network, own)
    },
  }
}
