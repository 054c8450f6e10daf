import type { Database } from '../persistence/database.ts'
import type { AgentAddress } from '../../../policy/mqtt-topics.ts'

/**
 * Work on an uploaded file. It runs in a process of its own (host/upload-process.ts). So it uses nothing but the file,
 * and its result is plain data.
 */
export interface UploadJob<T> {
  readonly name: string
  /** Failures name `field`, the field of the request that contains the file. */
  work(bytes: Uint8Array, field: string): Promise<T>
}

/** Runs jobs on uploaded files. */
export interface UploadReader {
  /**
   * Resolves to the result of the job. Rejects with its failure. A file that needs too much memory or time causes a 400
   * about `field`.
   */
  run<T>(job: UploadJob<T>, bytes: Uint8Array, field: string): Promise<T>
}

/** Runs jobs in this process, for tests and simulations: without limits of memory and time. */
export const READ_HERE: UploadReader = { run: (job, bytes, field) => job.work(bytes, field) }

/**
 * Storage for uploaded images: a folder or S3-compatible storage (bin/). Names are content hashes, so images never
 * change.
 */
export interface ImageStore {
  /** Stores an image. Idempotent. Durable when it resolves. */
  put(name: string, bytes: Uint8Array, contentType: string): Promise<void>
  /** Reads an image; undefined if it does not exist. */
  get(name: string): Promise<Uint8Array | undefined>
}

/** Names of images: `HASH.EXT`. */
export const IMAGE_NAME = /^[A-Za-z0-9_-]{43}\.(?:jpg|png|webp)$/

export const IMAGE_TYPES: Readonly<Record<string, string>> = { jpg: 'image/jpeg', png: 'image/png', webp: 'image/webp' }

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

/**
 * The other worker processes of this cloud on this machine (ADR processes). A message may be lost when a process ends. The
 * loss only delays work, because every process also reads the database regularly.
 */
export interface Siblings {
  /** Sends the message to all other workers. */
  send(message: SiblingMessage): void
  /** Runs `handle` for each message of another worker. */
  subscribe(handle: (message: SiblingMessage) => void): void
}

/** Requests taken from one bucket of a rate limit, with the allowance of the bucket. */
type TakenRequests = readonly [bucket: string, count: number, perSecond: number, burst: number]

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

/** Interfaces that operations use and other modules implement. */

/**
 * Time of the last use of each key, to the minute. Requests write the time to memory only, so that responses do not
 * wait for the database. A job stores the times every minute. A crash loses the times of at most one minute.
 */
export interface KeyUsage {
  note(keyId: string, nowMs: number): void
  /** Last use in this process, ms since 1970; undefined: read the database. */
  lastUsedMs(keyId: string): number | undefined
  /** Stores the times that were noted since the last flush. */
  flush(database: Database): Promise<void>
}

/** Time at which the cloud last received something from each agent (protection/agent-identity/agent-queries.ts). */
export interface LastSeen {
  /** Call this only after the agent was authenticated. */
  note(agentId: string, nowMs: number): void
  /** Latest time, ms, if it is not stored yet; undefined if the database has the latest time. */
  lastSeenMs(agentId: string): number | undefined
  /** Stores the times that were noted since the last call. */
  flush(database: Database): Promise<void>
}

/** Counts requests for `/metrics`. */
export interface RequestMetrics {
  /** Counts an answered request. `seconds`: time from the arrival of the request to its response. */
  observeRequest(operation: string, status: number, seconds: number): void
}

/** Key pair that identifies this installation to push services (RFC 8292). */
export interface VapidKeys {
  /** Uncompressed point, base64url, as browsers expect it. */
  readonly publicKey: string
  /** 32 bytes, base64url. */
  readonly privateKey: string
}

/** What a browser's sign-in at an identity provider must answer to. Secret. */
export interface SignInFlow {
  readonly state: string
  readonly nonce: string
  /** Verifier of PKCE (RFC 7636). */
  readonly verifier: string
}

/** A person as the identity provider knows them. */
export interface Identity {
  readonly issuer: string
  readonly subject: string
  /** ASCII, with small letters; undefined if the provider names none. */
  readonly email: string | undefined
  /** Why the address proves nothing; undefined if it may sign in. */
  readonly refusal: 'email_missing' | 'email_not_verified' | 'email_domain_not_listed' | undefined
  readonly name: string | undefined
  /** True if the person confirmed the sign-in with a second factor. */
  readonly hasSecondFactor: boolean
}

/** Sign-in with OpenID Connect. Both calls throw `unavailable` if the provider does not answer as it should. */
export interface IdentityProvider {
  /** Name on the button of the sign-in page. */
  readonly name: string
  /** Asks the provider for its settings, and logs whether it answers. Never throws. */
  check(): Promise<void>
  /**
   * Address of the provider's sign-in page, and the secrets of this sign-in. `again`: the provider asks who signs in,
   * although the browser has a session there.
   */
  begin(again: boolean): Promise<{ readonly url: string; readonly flow: SignInFlow }>
  /** Verifies the answer: the query of the address to which the provider sent the browser. Undefined: not valid. */
  finish(query: string, flow: SignInFlow): Promise<Identity | undefined>
}
