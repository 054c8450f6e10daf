import type { Database, Db } from '../persistence/database.ts'
import type { Operation } from './operation.ts'

/** Runs one read of an operation. It may run twice. */
export type ReadSource = <T>(look: (db: Db) => Promise<T>) => Promise<T>

/**
 * Reads of one call. An operation that may be stale reads from the replica while that is fresh enough. Any error there,
 * such as a store that the replica does not have yet, lets the primary answer: the replica never refuses a call. After
 * the first read of the primary, a call never reads older data again.
 */
export function readSourceOf({ mayBeStale }: Operation, database: Database): ReadSource {
  let replica = mayBeStale ? database.replica : undefined
  return async (look) => {
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
