import { newId } from '../../policy/ids.ts'
import { countSession } from '../analytics/count-purchases.ts'
import { knownCaller } from '../foundation/caller.ts'
import { notFound } from '../foundation/failure.ts'
import type { Call } from '../operations/operation.ts'
import type { ShoppingSessionRow } from '../persistence/tables/purchases.ts'
import { ownStoreOf } from '../stores/own-store.ts'

/** Starts a shopper's session in the store. */
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
    completed: 0,
    spot_check_due: 0,
    vouched: userId !== undefined && knownCaller(call.caller).kind === 'secret' ? 1 : 0,
  }
  await call.db.insertInto('shopping_session').values(session).execute()
  await countSession(call, session)
  return session
}

/** The caller's session; its store must be one that the caller may see. */
export async function ownSession(call: Call, sessionId: string): Promise<ShoppingSessionRow> {
  const { tenant } = knownCaller(call.caller)
  const session = await call.db
    .selectFrom('shopping_session')
    .selectAll()
    .where('session_id', '=', sessionId)
    .where('tenant', '=', tenant)
    .executeTakeFirst()
  if (!session) throw notFound('session')
  await ownStoreOf(call, session.store_id, 'session')
  return session
}
