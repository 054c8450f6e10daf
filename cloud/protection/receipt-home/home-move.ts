import type { RightClass } from '../../../policy/vocabulary.ts'
import type { Call } from '../../operations/operation.ts'
import type { Db } from '../../persistence/database.ts'
import { prepared } from '../../persistence/prepared.ts'
import type { StoreRow } from '../../persistence/tables/stores.ts'
import { findStore, raiseDocumentVersion } from '../../stores/queries.ts'
import { denyRights } from '../rights/deny-list.ts'

/**
 *   the store's exit gate gets an agent, or staff moves the home
 *     ─▶ beginHomeMove: used rights go onto the deny list, every agent is waited for
 *     ─▶ the policy names the new home ─▶ it honours new receipts
 *     ─▶ all agents have told what they redeemed ─▶ it honours the receipts from before as well
 *
 * One agent of a store, or the cloud, is the home of the store's receipts: it alone releases goods by a receipt, or lets another
 * agent do so. A new home must know what was used before it honours receipts that are older than the move.
 */

const GUARD_SECONDS = 60

/** Puts every used right of the store's receipts that still live on its deny list. */
async function denyUsedRights(call: Call, storeId: string): Promise<void> {
  const nowS = Math.floor(call.nowMs / 1_000)
  const used = await call.db
    .selectFrom('unit_right')
    .innerJoin('purchase', 'purchase.purchase_id', 'unit_right.purchase_id')
    .select(['unit_right.purchase_id', 'unit_right.line_id', 'unit_right.unit_no', 'unit_right.right_class'])
    .where('purchase.store_id', '=', storeId)
    .where('purchase.receipt_exp', '>', nowS)
    .where('unit_right.state', '=', 'used')
    .orderBy('unit_right.purchase_id')
    .execute()
  const groups = new Map<string, typeof used>()
  for (const right of used) {
    const name = `${right.purchase_id} ${right.right_class}`
    groups.set(name, [...(groups.get(name) ?? []), right])
  }
  for (const rights of groups.values()) {
    const [first] = rights
    const purchase =
      first &&
      (await call.db.selectFrom('purchase').selectAll().where('purchase_id', '=', first.purchase_id).executeTakeFirst())
    if (!first || !purchase?.receipt_exp) continue
    const units = rights.map((right) => ({ lineId: right.line_id, unitNo: right.unit_no }))
    await denyRights(call, purchase, first.right_class as RightClass, units, purchase.receipt_exp + GUARD_SECONDS)
  }
}

const agentsHere = prepared((db, p: { storeId: string }) =>
  db.selectFrom('agent').select('agent_id').where('store_id', '=', p.storeId).where('revoked_ms', 'is', null),
)
const waitFor = prepared((db, p: { storeId: string; agentId: string; policyVer: number }) =>
  db
    .insertInto('home_move_wait')
    .values({ store_id: p.storeId, agent_id: p.agentId, policy_ver: p.policyVer })
    .onConflict((c) => c.columns(['store_id', 'agent_id']).doUpdateSet({ policy_ver: p.policyVer })),
)

/** The home moves: the new one must have taken the deny list as it is now, and all other agents must have told what they redeemed. Call it before the policy names the new home. */
export async function beginHomeMove(call: Call, store: StoreRow, home: string): Promise<void> {
  const { db } = call
  const { store_id: storeId } = store
  await denyUsedRights(call, storeId)
  await storeHomeMove(call, storeId, Math.ceil(call.nowMs / 1_000))
  // The next version of the documents names the new home.
  const policyVer = ((await findStore(db, storeId))?.document_version ?? store.document_version) + 1
  // The former home has given rights to others, too, and the cloud is no better: whoever was cut off from it may have honoured receipts. That only they can tell.
  for (const { agent_id: agentId } of await agentsHere(db, { storeId }))
    await waitFor(db, { storeId, agentId, policyVer })
  // What it has redeemed itself it knows.
  await db.deleteFrom('home_move_wait').where('store_id', '=', storeId).where('agent_id', '=', home).execute()
}

/** Until the home has taken the deny list as it is now, receipts from before then are for staff. */
async function storeHomeMove({ db }: Call, storeId: string, movedS: number): Promise<void> {
  const { deny_seq } = await db
    .selectFrom('store')
    .select('deny_seq')
    .where('store_id', '=', storeId)
    .executeTakeFirstOrThrow()
  const row = { moved_s: movedS, deny_seq }
  await db
    .insertInto('home_move')
    .values({ store_id: storeId, ...row })
    .onConflict((c) => c.column('store_id').doUpdateSet(row))
    .execute()
}

const endWait = prepared((db, p: { agentId: string; policyVer: number }) =>
  db
    .deleteFrom('home_move_wait')
    .where('agent_id', '=', p.agentId)
    .where('policy_ver', '<=', p.policyVer)
    .returning('store_id'),
)

/** A former home has the policy that says so, and the cloud has every row of its ledger: what it redeemed is on the deny list. */
export async function endWaitForAgent(call: Call, agentId: string, policyVer: number): Promise<void> {
  const done = await endWait(call.db, { agentId, policyVer })
  for (const { store_id: storeId } of done) await finishHomeMove(call, storeId)
}

/** Another agent goes on with its ledger, and tells what this one has not. */
export async function waitForSuccessor({ db }: Call, agentId: string, heir: string): Promise<void> {
  const waits = await db
    .deleteFrom('home_move_wait')
    .where('agent_id', '=', agentId)
    .returning(['store_id', 'policy_ver'])
    .execute()
  for (const { store_id: storeId, policy_ver: policyVer } of waits)
    await waitFor(db, { storeId, agentId: heir, policyVer })
}

/** An agent is gone for good and tells nothing more: nobody waits for it. */
export async function cancelWaitForAgent(call: Call, agentId: string): Promise<void> {
  await endWaitForAgent(call, agentId, Number.MAX_SAFE_INTEGER)
}

async function finishHomeMove(call: Call, storeId: string): Promise<void> {
  const { db, services } = call
  if (await hasAwaitedAgents(db, storeId)) return
  const move = await db.selectFrom('home_move').select('moved_s').where('store_id', '=', storeId).executeTakeFirst()
  if (!move) return
  await denyUsedRights(call, storeId)
  await storeHomeMove(call, storeId, move.moved_s)
  await raiseDocumentVersion(db, storeId)
  call.afterCommit(() => services.agents.storeChanged(storeId))
}

/** Whether a former home may still have redeemed what nobody knows of. */
export async function hasAwaitedAgents(db: Db, storeId: string): Promise<boolean> {
  return (await awaitedAgents(db, { storeId })).length > 0
}

const awaitedAgents = prepared((db, p: { storeId: string }) =>
  db.selectFrom('home_move_wait').select('agent_id').where('store_id', '=', p.storeId).limit(1),
)
