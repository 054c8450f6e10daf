/** How many connections the broker holds. */
export interface BrokerLimits {
  /** Agents that are logged in now, or were within a day. */
  agents: number
  /** Connections that are not logged in yet. They never take the place of an agent. */
  unauthenticated: number
  /** Of these from one address, or its network. */
  unauthenticatedPerNetwork: number
}

export const BROKER_LIMITS: BrokerLimits = { agents: 10_000, unauthenticated: 256, unauthenticatedPerNetwork: 64 }
