/** An agent, as a broker sees it. */
export interface BrokerAgent {
  agentId: string
  storeId: string
  /** Undefined for a revoked agent. */
  password: string | undefined
}

/** Login of the cloud at the broker. */
interface BrokerCloud {
  username: string
  password: string
}

/** Who may use the broker. */
export interface BrokerUsers {
  agents: readonly BrokerAgent[]
  /** Undefined if the administrator gives the cloud its rights. */
  cloud: BrokerCloud | undefined
}
