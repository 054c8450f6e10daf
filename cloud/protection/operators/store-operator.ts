import { knownCaller, maySee } from '../../foundation/caller.ts'
import { notFound } from '../../foundation/failure.ts'
import type { Call } from '../../operations/operation.ts'

/**
 * Who looked is recorded as the merchant asserts (decisions §9): whoever has staff numbers of their own uses those. Fails with 404 for
 * an operator whom the caller knows as another store's, or as removed; others' are words like any other.
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
