import { knownCaller, maySee } from '../../foundation/caller.ts'
import { notFound } from '../../foundation/failure.ts'
import type { Call } from '../../operations/operation.ts'

/**
 * Checks an operator id. Throws 404 if the operator was removed, or is registered in another store of the caller.
 * Accepts unknown ids, because merchants may use their own staff numbers (ADR 0009).
 */
export async function assertOperator(
  { db, caller }: Pick<Call, 'db' | 'caller'>,
  operatorId: string,
  storeId: string,
): Promise<void> {
  const operator = await db
    .selectFrom('operator')
    .innerJoin('store', 'store.store_id', 'operator.store_id')
    .select(['operator.store_id', 'operator.removed_ms', 'store.tenant'])
    .where('operator.operator_id', '=', operatorId)
    .executeTakeFirst()
  if (!operator || !maySee(knownCaller(caller), operator)) return
  if (operator.store_id !== storeId || operator.removed_ms !== null) throw notFound('operator')
}
