import type { AgentAddress } from '../../policy/topics.ts'

/** What operations may ask of the way to the agents. It is a hint only: whatever matters can also be fetched. */
export interface AgentChannel {
  /** Something that the agents of this store are told has changed: they should look soon. */
  storeChanged(storeId: string): void
  /** Items of this store have changed; resolves when that was handed to the broker, and never rejects. */
  itemsChanged(storeId: string): Promise<void>
  /** Signing keys have changed: every agent that listens is told. */
  keysChanged(): void
  /** The agent was revoked: it is told so, and its line is cut. */
  agentRevoked(agent: AgentAddress): void
  /** Asks an agent to look now, or to give up a token of its own. */
  sendCommand(agent: AgentAddress, command: AgentCommand): void
  /** Whether its line ends here and is open. */
  isConnected(agentId: string): boolean
}

/** What an agent can be asked for at once. */
export type AgentCommand = { command: 'sync' } | { command: 'revoke' } | { command: 'void'; nonce: string }

/** Nobody is told anything: agents find out when they ask. */
export const NO_CHANNEL: AgentChannel = {
  storeChanged: () => undefined,
  itemsChanged: () => Promise.resolve(),
  keysChanged: () => undefined,
  agentRevoked: () => undefined,
  sendCommand: () => undefined,
  isConnected: () => false,
}
