import type { CloudAnswer } from './wire/http-client.ts'

/** The connection to the cloud, as decisions use it. */
export interface CloudLink {
  /** True after a completed login, until a call gets no answer or the broker line closes. */
  readonly isOnline: boolean
  /** Wall-clock time since which the agent is offline, ms; null while online. */
  readonly offlineSinceMs: number | null
  /** Calls an operation of the API as this agent. Never throws. */
  call(operation: string, body: object): Promise<CloudAnswer>
  /** Resolves when the cloud has acknowledged all current rows, or after `limitMs`. Never rejects. */
  whenReported(limitMs: number): Promise<void>
  /** Fetches newer documents. Resolves at once if the rate limit is reached. Never rejects. */
  refreshDocuments(): Promise<void>
}
