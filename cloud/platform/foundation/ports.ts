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
