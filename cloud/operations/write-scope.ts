import type { Database, Db, WriteScope } from '../persistence/database.ts'
import type { Operation } from './operation.ts'

/** Rolls a transaction back that runs together with others. It then runs again, alone. */
export class AloneNeeded extends Error {
  override name = 'AloneNeeded'
}

/** Scope of an operation's transactions that run alone: changes of the catalogue do not wait for sales (ADR 0049). */
export function aloneScope({ area }: Pick<Operation, 'area'>): WriteScope | undefined {
  return area === 'catalogue' ? { alone: ['catalogue'] } : undefined
}

/**
 * Runs `work` in one transaction: together with others if the operation has a gate, else alone. If `work` throws
 * `AloneNeeded`, it runs again, alone.
 */
export async function writeFor<T>(
  database: Database,
  operation: Operation,
  work: (db: Db, isTogether: boolean) => Promise<T>,
): Promise<T> {
  const { together } = operation
  if (together !== undefined) {
    try {
      return await database.write((db) => work(db, true), { together })
    } catch (error) {
      if (!(error instanceof AloneNeeded)) throw error
    }
  }
  return database.write((db) => work(db, false), aloneScope(operation))
}
