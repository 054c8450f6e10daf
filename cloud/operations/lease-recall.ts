import type { Db } from '../persistence/database.ts'

/** Waits a limited time for the lease holders to release. Reads committed data. Never rejects. */
export type WaitForRelease = (reads: Db) => Promise<void>

/** Rolls the transaction back. `perform` then stores the recall in its own transaction, waits, and runs the operation again. */
export class LeaseRecallNeeded extends Error {
  override name = 'LeaseRecallNeeded'
  readonly recall: (db: Db) => Promise<WaitForRelease>
  constructor(ask: (db: Db) => Promise<WaitForRelease>) {
    super('a lease must be recalled before the operation can run')
    this.recall = ask
  }
}
