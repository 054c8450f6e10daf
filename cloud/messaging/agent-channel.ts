/** What operations may ask of the way to the agents. It is a hint only: whatever matters can also be fetched. */
export interface AgentChannel {
  /** Something that the agents of this store are told has changed: they should look soon. */
  storeChanged(storeId: string): void
  /** Items of this store have changed; resolves when that was handed to the broker, and never rejects. */
  itemsChanged(storeId: string): Promise<void>
  /** Signing keys have changed: every agent that listens is told. */
  keysChanged(): void
  /** The agent was revoked: its line is cut. */
  agentRevoked(agentId: string): void
}

/** Nobody is told anything: agents find out when they ask. */
export const NO_CHANNEL: AgentChannel = { storeChanged: () => undefined, itemsChanged: () => Promise.resolve(), keysChanged: () => undefined, agentRevoked: () => undefined }
