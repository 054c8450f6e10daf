import type { Db } from '../persistence/database.ts'

/** Waits for what was asked for, as long as that is sensible; never rejects. Looks at what is committed. */
export type WaitForRelease = (reads: Db) => Promise<void>

/** Thrown by `call.askFirst`: the transaction is undone, `ask` is made durable in one of its own, and the operation runs once more. */
export class LeaseRecallNeeded extends Error {
  override name = 'LeaseRecallNeeded'
  readonly recall: (db: Db) => Promise<WaitForRelease>
  constructor(ask: (db: Db) => Promise<WaitForRelease>) {
    super('somebody is asked before this is answered')
    this.recall = ask
  }
}
