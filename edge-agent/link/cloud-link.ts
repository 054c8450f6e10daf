import type { CloudAnswer } from './wire/http-client.ts'

/** The connection to the cloud, as decisions use it. */
export interface CloudLink {
  /** True if the last call succeeded and no socket has closed since. */
  readonly isOnline: boolean
  /** Wall clock, ms; null while online. */
  readonly offlineSinceMs: number | null
  /** Calls an operation of the API as this agent. Never throws. */
  call(operation: string, body: object): Promise<CloudAnswer>
  /** Resolves when the cloud has acknowledged all current rows, or after `limitMs`. Never rejects. */
  whenReported(limitMs: number): Promise<void>
  /** Fetches the documents that are newer than those here; resolves at once when it is called too often. Never rejects. */
  refreshDocuments(): Promise<void>
}
