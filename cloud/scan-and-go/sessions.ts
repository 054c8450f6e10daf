import { newId } from '../../policy/ids.ts'
import { countSession } from '../analytics/count-purchases.ts'
import { knownCaller } from '../foundation/caller.ts'
import type { Call } from '../operations/operation.ts'
import { preparedInsert } from '../persistence/prepared-insert.ts'
import type { ShoppingSessionRow } from '../persistence/tables/purchases.ts'

const insertSession = preparedInsert((db, rows: readonly ShoppingSessionRow[]) =>
  db.insertInto('shopping_session').values(rows),
)

/** Creates a shopping session in a store. */
export async function openSession(
  call: Call,
  storeId: string,
  userId: string | undefined,
): Promise<ShoppingSessionRow> {
  const session: ShoppingSessionRow = {
    session_id: newId('ses', call.services.platform),
    tenant: knownCaller(call.caller).tenant,
    store_id: storeId,
    user_id: userId ?? null,
    created_ms: call.nowMs,
    purchase_id: null,
    completed: 0,
    spot_check_due: 0,
    vouched: userId !== undefined && knownCaller(call.caller).kind === 'secret' ? 1 : 0,
  }
  await insertSession(call.db, [session])
  await countSession(call, session)
  return session
}
