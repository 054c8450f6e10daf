import type { AgentAddress } from '../../policy/mqtt-topics.ts'
import type { AgentCommand } from './agent-channel.ts'

/**
 * The other worker processes of this cloud on this machine (ADR 0053). A message may be lost when a process ends. The
 * loss only delays work, because every process also reads the database regularly.
 */
export interface Siblings {
  /** Sends the message to all other workers. */
  send(message: SiblingMessage): void
  /** Runs `handle` for each message of another worker. */
  subscribe(handle: (message: SiblingMessage) => void): void
}

/** Requests taken from one bucket of a rate limit, with the allowance of the bucket. */
export type TakenRequests = readonly [bucket: string, count: number, perSecond: number, burst: number]

export type SiblingMessage =
  /** Workers without the broker send these to the worker that holds the broker. */
  | { readonly kind: 'storeChanged' | 'itemsChanged'; readonly storeId: string }
  | { readonly kind: 'keysChanged' }
  | { readonly kind: 'revoked'; readonly agent: AgentAddress }
  | { readonly kind: 'command'; readonly agent: AgentAddress; readonly command: AgentCommand }
  /** A new worker requests the list of connected agents. */
  | { readonly kind: 'hello' }
  /** The holder of the broker sends all connected agents. */
  | { readonly kind: 'agents'; readonly connected: readonly string[] }
  /** Requests that a worker has admitted since its last message. */
  | { readonly kind: 'taken'; readonly limiter: string; readonly taken: readonly TakenRequests[] }
