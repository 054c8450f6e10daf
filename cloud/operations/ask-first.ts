import type { Db } from '../persistence/database.ts'

/** Waits for what was asked for, as long as that is sensible; never rejects. Looks at what is committed. */
export type WaitForIt = (reads: Db) => Promise<void>

/** Thrown by `call.askFirst`: the transaction is undone, `ask` is made durable in one of its own, and the operation runs once more. */
export class AskFirst extends Error {
  override name = 'AskFirst'
  readonly ask: (db: Db) => Promise<WaitForIt>
  constructor(ask: (db: Db) => Promise<WaitForIt>) {
    super('somebody is asked before this is answered')
    this.ask = ask
  }
}
