import type { Database, Db, WriteScope } from '../persistence/database.ts'
import type { Operation } from './operation.ts'
import type { Caller } from '../foundation/caller.ts'
import { holderOf } from '../foundation/shared-slots.ts'

/**
 * Thrown to roll back a transaction that runs at the same time as others of its gate. The work of the transaction then
 * runs again, alone.
 */
export class AloneNeeded extends Error {
  override name = 'AloneNeeded'
}

/**
 * Scope of transactions that run alone. Changes of the catalogue do not wait for operations of the gate `sales` (ADR
 * database).
 */
function aloneScope({ area }: Pick<Operation, 'area'>): WriteScope {
  return area === 'catalogue' ? { alone: ['catalogue'] } : {}
}

/**
 * Runs `work` in one transaction. If the operation has a gate, the transaction runs at the same time as others of this
 * gate, else alone. If `work` throws `AloneNeeded`, `work` runs again, alone. The accounts of callers take turns.
 */
export async function writeFor<T>(
  database: Database,
  { operation, caller }: { readonly operation: Operation; readonly caller: Caller },
  work: (db: Db, isTogether: boolean) => Promise<T>,
): Promise<T> {
  const { together } = operation
  const holder = holderOf(caller)
  if (together !== undefined) {
    try {
      return await database.write((db) => work(db, true), { together, holder })
    } catch (error) {
      if (!(error instanceof AloneNeeded)) throw error
    }
  }
  return database.write((db) => work(db, false), { ...aloneScope(operation), holder })
}

/** Runs one read of an operation. The read may run twice. */
type ReadSource = <T>(look: (db: Db) => Promise<T>) => Promise<T>

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
