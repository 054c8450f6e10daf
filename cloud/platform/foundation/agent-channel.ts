import type { AgentAddress } from '../../../policy/mqtt-topics.ts'

/** Messages from operations to agents. A lost message only causes a delay, because agents also poll the cloud. */
export interface AgentChannel {
  /** Publishes changed documents of this store. */
  storeChanged(storeId: string): void
  /** Publishes changed items of this store. Resolves when the broker has the message. Never rejects. */
  itemsChanged(storeId: string): Promise<void>
  /** Publishes the documents of all stores again after a change of signing keys. */
  keysChanged(): void
  /** Sends the revocation to the agent and closes its connection. */
  agentRevoked(agent: AgentAddress): void
  /** Sends a signed command to one agent. */
  sendCommand(agent: AgentAddress, command: AgentCommand): void
  /** True if the agent is connected to the broker of this process or of another worker. */
  isConnected(agentId: string): boolean
}

/** Commands to an agent. With `void`, the cloud requests that the agent gives up an unused token. */
export type AgentCommand = { command: 'sync' } | { command: 'revoke' } | { command: 'void'; nonce: string }

/** Sends nothing: agents find changes when they poll. */
export const NO_CHANNEL: AgentChannel = {
  storeChanged: () => undefined,
  itemsChanged: () => Promise.resolve(),
  keysChanged: () => undefined,
  agentRevoked: () => undefined,
  sendCommand: () => undefined,
  isConnected: () => false,
}
