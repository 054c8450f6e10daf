import type { CloudAnswer } from './wire/http-client.ts'

/** What decisions may ask of the way to the cloud. */
export interface CloudLink {
  /** A working connection as far as anybody knows: the last call worked and no socket has closed since. */
  readonly isOnline: boolean
  /** Wall clock, ms; null while online. */
  readonly offlineSinceMs: number | null
  /** Calls an operation of the API as this agent. Never throws. */
  call(operation: string, body: object): Promise<CloudAnswer>
  /** Resolves when the cloud has all that was written down before, or after `limitMs`. Never rejects. */
  whenReported(limitMs: number): Promise<void>
  /** Fetches the documents that are newer than those here; resolves at once when it is called too often. Never rejects. */
  refreshDocuments(): Promise<void>
}
