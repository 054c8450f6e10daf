import type { AgentAddress } from '../../../policy/mqtt-topics.ts'
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

/** A change of data: area of an operation or type of an event, and its store; null if it is not about one store. */
export interface SiblingChange {
  readonly tenant: string
  readonly topic: string
  readonly storeId: string | null
}

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
  /** Data that a worker has changed since its last message, for open pages of the console. */
  | { readonly kind: 'changed'; readonly changes: readonly SiblingChange[] }
  /** Requests that a worker has admitted since its last message. */
  | { readonly kind: 'taken'; readonly limiter: string; readonly taken: readonly TakenRequests[] }
