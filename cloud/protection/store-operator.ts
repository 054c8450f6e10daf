import { notFound } from '../operations/failure.ts'
import type { Call } from '../operations/operation.ts'

/** Fails with 404 for who is no operator of this store, or is so no longer. */
export async function assertOperator({ db }: Pick<Call, 'db'>, operatorId: string, storeId: string): Promise<void> {
  const operator = await db.selectFrom('operator').select(['store_id', 'removed_ms']).where('operator_id', '=', operatorId).executeTakeFirst()
  if (operator?.store_id !== storeId || operator.removed_ms !== null) throw notFound('operator')
}
