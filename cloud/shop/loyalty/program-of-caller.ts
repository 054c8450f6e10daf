import { knownCaller } from '../../platform/foundation/caller.ts'
import { notFound, precondition } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { StoreRow } from '../../platform/persistence/tables/stores.ts'
import { ownStoreOf } from '../../platform/stores/own-store.ts'
import { openProgram, type Program } from './program.ts'
import { findProgram } from './queries.ts'

/**
 * Finds a program of the caller with its store. Throws 404 if the program is unknown, or if the caller may not see its
 * store.
 */
export async function programOfCaller(call: Call, programId: string): Promise<{ program: Program; store: StoreRow }> {
  const row = await findProgram(call.db, knownCaller(call.caller).tenant, programId)
  if (!row) throw notFound('loyalty program')
  const store = await ownStoreOf(call, row.store_id, 'loyalty program')
  return { program: openProgram(row, store), store }
}

/** Throws 409 if the program is inactive. */
export function assertActive({ row }: Program): void {
  if (row.is_active !== 1)
    throw precondition('program_inactive', 'this loyalty program is not active: activate it with updateLoyaltyProgram')
}
