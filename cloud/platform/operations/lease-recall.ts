import type { Db } from '../persistence/database.ts'

/** Waits a limited time until the lease holders give up their tokens. Reads committed data. Never rejects. */
export type WaitForRelease = (reads: Db) => Promise<void>

/**
 * Thrown to roll the transaction back. `perform` then stores the recall in its own transaction, waits, and runs the
 * operation again.
 */
export class LeaseRecallNeeded extends Error {
  override name = 'LeaseRecallNeeded'
  readonly recall: (db: Db) => Promise<WaitForRelease>
  constructor(recall: (db: Db) => Promise<WaitForRelease>) {
    super('a lease must be recalled before the operation can run')
    this.recall = recall
  }
}
