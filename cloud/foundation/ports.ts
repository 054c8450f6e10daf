import type { Database } from '../persistence/database.ts'

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

/** Time at which the cloud last received something from each agent (agent-identity/last-seen.ts). */
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
