import { knownCaller } from '../../platform/foundation/caller.ts'
import { notFound } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import { prepared } from '../../platform/persistence/prepared.ts'
import type { ShoppingSessionRow } from '../../platform/persistence/tables/purchases.ts'
import { ownStoreOf } from '../../platform/stores/own-store.ts'

const sessionById = prepared((db, p: { sessionId: string; tenant: string }) =>
  db.selectFrom('shopping_session').selectAll().where('session_id', '=', p.sessionId).where('tenant', '=', p.tenant),
)

/** Finds a session of the caller. Throws 404 if the session is unknown, or if the caller may not see its store. */
export async function sessionOfCaller(call: Call, sessionId: string): Promise<ShoppingSessionRow> {
  const { tenant } = knownCaller(call.caller)
  const [session] = await sessionById(call.db, { sessionId, tenant })
  if (!session) throw notFound('session')
  await ownStoreOf(call, session.store_id, 'session')
  return session
}
