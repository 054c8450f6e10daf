import { existsSync, readFileSync } from 'node:fs'
import { BROKER_LIMITS, type BrokerLimits } from '../cloud/messaging/broker-limits.ts'

/** Connections that one HTTP server holds. */
export interface HttpLimits {
  /** All of them. */
  most: number
  /** Those whose request the server does not have in full: idle ones, and callers that still send. */
  waiting: number
}

export const HTTP_LIMITS: HttpLimits = { most: 10_000, waiting: 2_000 }

/** The limits of this process: smaller where it may open few files, so that its database can still open some. */
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

/** How many files this process may open; Node.js raises the soft limit to the hard one when it starts. */
function fileLimit(): number {
  if (!existsSync('/proc/self/limits')) return Infinity
  return Number(/^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? Infinity)
}
