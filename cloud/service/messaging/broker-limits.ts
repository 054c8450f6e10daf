/** Connection limits of the broker. */
export interface BrokerLimits {
  /** Agents that are connected or were connected within the last day. */
  agents: number
  /** Connections without a login. Such connections never displace an agent. */
  unauthenticated: number
  /** Connections without a login from one address or network. */
  unauthenticatedPerNetwork: number
}

export const BROKER_LIMITS: BrokerLimits = { agents: 10_000, unauthenticated: 256, unauthenticatedPerNetwork: 64 }
