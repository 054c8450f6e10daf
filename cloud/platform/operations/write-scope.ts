import type { Database, Db, WriteScope } from '../persistence/database.ts'
import type { Caller } from '../foundation/caller.ts'
import { holderOf } from '../foundation/shared-slots.ts'
import type { Operation } from './operation.ts'

/**
 * Thrown to roll back a transaction that runs at the same time as others of its gate. The work of the transaction then
 * runs again, alone.
 */
export class AloneNeeded extends Error {
  override name = 'AloneNeeded'
}

/**
 * Scope of transactions that run alone. Changes of the catalogue do not wait for operations of the gate `sales` (ADR
 * 0049).
 */
export function aloneScope({ area }: Pick<Operation, 'area'>): WriteScope {
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
