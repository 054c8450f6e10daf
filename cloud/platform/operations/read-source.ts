import type { Database, Db } from '../persistence/database.ts'
import type { Operation } from './operation.ts'

/** Runs one read of an operation. The read may run twice. */
export type ReadSource = <T>(look: (db: Db) => Promise<T>) => Promise<T>

/**
 * Reads of one call. If the operation has `mayBeStale`, reads go to the replica while the replica is fresh enough. If a
 * read of the replica fails, the primary repeats the read, for example because the replica lacks a new store. After the
 * first read from the primary, all later reads of the call use the primary, so that they return no older data. The
 * accounts of callers (`holder`) take turns.
 */
export function readSourceOf({ mayBeStale }: Operation, database: Database, holder: string): ReadSource {
  let replica = mayBeStale ? database.replica : undefined
  return (look) => database.readInTurn(holder, () => readOnce(look))

  async function readOnce<T>(look: (db: Db) => Promise<T>): Promise<T> {
    const db = replica?.reads()
    if (db !== undefined) {
      try {
        return await look(db)
      } catch (error) {
        replica?.failed(error)
      }
    }
    replica = undefined
    return look(database.reads)
  }
}
