import type { Database } from '../persistence/database.ts'

/** Small interfaces of parts that operations use and that domains implement. */

/**
 * When each key was used last, to the minute. A request only notes it in memory; what was noted is written
 * at once every minute, so that no answer waits for it. What a crash loses is at most the last minute.
 */
export interface KeyUsage {
  note(keyId: string, nowMs: number): void
  /** What this process has seen, ms; undefined when nothing: then the database knows. */
  lastUsedMs(keyId: string): number | undefined
  /** Writes what was noted since the last time. */
  flush(database: Database): Promise<void>
}

/** When the cloud last received something from each agent (agent-identity/last-seen.ts). */
export interface LastSeen {
  /** Call this only after the agent was authenticated. */
  note(agentId: string, nowMs: number): void
  /** A time that is not stored yet, ms; undefined: the database has the latest. */
  lastSeenMs(agentId: string): number | undefined
  /** Stores what was noted since the last call. */
  flush(database: Database): Promise<void>
}

/** The key pair by which push services know this installation (RFC 8292). */
export interface VapidKeys {
  /** Uncompressed point, base64url, as browsers expect it. */
  readonly publicKey: string
  /** 32 bytes, base64url. */
  readonly privateKey: string
}
