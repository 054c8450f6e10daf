import { existsSync, readFileSync } from 'node:fs'
import { BROKER_LIMITS, type BrokerLimits } from '../cloud/service/messaging/packet-guard.ts'

/** Limits for the connections of an HTTP server. */
export interface HttpLimits {
  /** Maximum number of connections. */
  most: number
  /** Maximum number of connections without a complete request: idle connections and slow senders. */
  waiting: number
}

export const HTTP_LIMITS: HttpLimits = { most: 10_000, waiting: 2_000 }

/**
 * The limits of this process. If the limit of open files is low, these limits are smaller, so that enough files remain
 * for the database.
 */
export function connectionLimits(files = fileLimit()): { http: HttpLimits; broker: BrokerLimits } {
  const unauthenticated = Math.min(BROKER_LIMITS.unauthenticated, Math.floor(files / 32))
  return {
    http: {
      most: Math.min(HTTP_LIMITS.most, Math.floor(files / 2)),
      waiting: Math.min(HTTP_LIMITS.waiting, Math.floor(files / 8)),
    },
    broker: {
      agents: Math.min(BROKER_LIMITS.agents, Math.floor(files / 4)),
      unauthenticated,
      unauthenticatedPerNetwork: Math.min(BROKER_LIMITS.unauthenticatedPerNetwork, Math.ceil(unauthenticated / 2)),
    },
  }
}

/** Maximum number of open files. Node.js raises the soft limit to the hard limit at its start. */
function fileLimit(): number {
  if (!existsSync('/proc/self/limits')) return Infinity
  return Number(/^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? Infinity)
}
