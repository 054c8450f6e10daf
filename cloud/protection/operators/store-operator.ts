import { knownCaller, maySee } from '../../platform/foundation/caller.ts'
import { notFound } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'

/** Throws 404 if this person may not act as an operator of the store. */
export async function assertOperator(
  call: Pick<Call, 'db' | 'caller'>,
  operatorId: string,
  storeId: string,
): Promise<void> {
  if (!(await mayOperate(call, operatorId, storeId))) throw notFound('operator')
}

/**
 * False if the operator was removed, or is registered in another store of the account. Accepts unknown ids, because
 * merchants may use their own staff numbers (ADR 0009).
 */
export async function mayOperate(
  { db, caller }: Pick<Call, 'db' | 'caller'>,
  operatorId: string,
  storeId: string,
): Promise<boolean> {
  const operator = await db
    .selectFrom('operator')
    .innerJoin('store', 'store.store_id', 'operator.store_id')
    .select(['operator.store_id', 'operator.removed_ms', 'store.tenant'])
    .where('operator.operator_id', '=', operatorId)
    .executeTakeFirst()
  const known = knownCaller(caller)
  if (operator?.tenant !== known.tenant) return true
  // A key for other stores does not learn which operators exist. An agent has no staff numbers of its own.
  if (known.kind !== 'agent' && !maySee(known, operator)) return true
  return operator.store_id === storeId && operator.removed_ms === null
}
