import type { JobCall } from '../../platform/operations/job-steps.ts'
import { type Call, operation, type Services } from '../../platform/operations/operation.ts'
import type { Database, Db } from '../../platform/persistence/database.ts'
import { prepared } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { findStore, raiseDocumentVersion } from '../../platform/stores/queries.ts'
import { continueDenials, denyNextRights, isDenying, restartDenial } from './deny-used-rights.ts'
import { z } from 'zod'
import { notFound } from '../../platform/foundation/failure.ts'
import { Id, Success } from '../../platform/operations/fields.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { findAgent } from '../agent-identity/sessions.ts'
import { storeDocumentChanged, policyOf } from '../../platform/stores/parsed-policy.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'

/**
 * True if every exit gate of the store has received the paid status of the purchase's items, so that no gate alarms
 * (ADR gates). Returns undefined if the purchase has no tagged unit, or if the store has no gate with an agent.
 */
export async function areGatesUpToDate(
  db: Db,
  purchase: Pick<Row<'purchase'>, 'purchase_id' | 'store_id'>,
): Promise<boolean | undefined> {
  const units = await db
    .selectFrom('purchase_unit')
    .leftJoin('protected_item', 'protected_item.item_id', 'purchase_unit.item_id')
    .select(['bound', 'item_seq'])
    .where('purchase_unit.purchase_id', '=', purchase.purchase_id)
    .execute()
  const agents = await db
    .selectFrom('device')
    .innerJoin('agent', 'agent.agent_id', 'device.agent_id')
    .select('agent.item_seq')
    .where('device.store_id', '=', purchase.store_id)
    .where('device.device_type', '=', 'exit_gate')
    .where('device.revoked_ms', 'is', null)
    .where('agent.revoked_ms', 'is', null)
    .execute()
  if (units.length === 0 || agents.length === 0) return undefined
  // A gate cannot know the tag of a unit that was bought by barcode.
  if (units.some((unit) => unit.bound === 0 || unit.item_seq === null)) return false
  const needed = units.reduce((most, unit) => Math.max(most, unit.item_seq ?? 0), 0)
  return agents.every((agent) => agent.item_seq >= needed)
}

/** Receipt homes of a store by epoch. The policy names the current one. The table `former_home` names earlier ones. */

const formerHome = prepared((db, p: { storeId: string; epoch: number }) =>
  db.selectFrom('former_home').select('agent_id').where('store_id', '=', p.storeId).where('home_epoch', '=', p.epoch),
)

/** Stores the current receipt home as a former one. Call it before `homeEpoch` of the policy changes. */
export async function storeFormerHome(db: Db, store: Pick<Row<'store'>, 'store_id' | 'policy'>): Promise<void> {
  const { home, homeEpoch } = policyOf(store)
  await db
    .insertInto('former_home')
    .values({ store_id: store.store_id, home_epoch: homeEpoch, agent_id: home })
    .onConflict((c) => c.doNothing())
    .execute()
}

/** Receipt home of a store in this epoch: an agentId or `cloud`; undefined for an unknown epoch. */
export async function findHomeIn(db: Db, storeId: string, epoch: number): Promise<string | undefined> {
  const store = await findStore(db, storeId)
  const policy = store && policyOf(store)
  if (policy?.homeEpoch === epoch) return policy.home
  const [known] = await formerHome(db, { storeId, epoch })
  return known?.agent_id
}

/**
 * Moves the receipt home of a store, when an agent adopts the exit gate or staff choose another agent (ADR leases).
 *
 * A new receipt home must know earlier uses before it honours receipts from before the move. So `beginHomeMove` begins
 * to deny all used rights, and records that the move must wait for a report of every agent. The policy names the new receipt
 * home, which then honours new receipts. After all agents have reported their redemptions, the new receipt home also
 * honours older receipts.
 */

const agentsHere = prepared((db, p: { storeId: string }) =>
  db.selectFrom('agent').select('agent_id').where('store_id', '=', p.storeId).where('revoked_ms', 'is', null),
)
const waitFor = prepared((db, p: { storeId: string; agentId: string; policyVer: number }) =>
  db
    .insertInto('home_move_wait')
    .values({ store_id: p.storeId, agent_id: p.agentId, policy_ver: p.policyVer })
    .onConflict((c) => c.columns(['store_id', 'agent_id']).doUpdateSet({ policy_ver: p.policyVer })),
)

/**
 * Begins a move of the receipt home to `home`. The move ends when the new receipt home has the current deny list and
 * all other agents have reported their redemptions. Call it before the policy names the new receipt home.
 */
export async function beginHomeMove(call: Call, store: Row<'store'>, home: string): Promise<void> {
  const { db } = call
  const { store_id: storeId } = store
  await storeHomeMove(call, storeId, Math.ceil(call.nowMs / 1_000))
  await restartDenial(call, storeId)
  // The next document version names the new receipt home.
  const policyVer = ((await findStore(db, storeId))?.document_version ?? store.document_version) + 1
  // Each agent may have used delegated rights, or released goods while it was isolated. The cloud learns of such
  // releases only from the agent's report.
  for (const { agent_id: agentId } of await agentsHere(db, { storeId }))
    await waitFor(db, { storeId, agentId, policyVer })
  // The new receipt home knows its own redemptions, so the move does not wait for its report.
  await db.deleteFrom('home_move_wait').where('store_id', '=', storeId).where('agent_id', '=', home).execute()
  if (!(await denyNextRights(call, storeId))) await storeHomeMove(call, storeId, Math.ceil(call.nowMs / 1_000))
}

/** Stores the move. Receipts from before the move need staff until the receipt home has the current deny list. */
async function storeHomeMove({ db }: JobCall, storeId: string, movedS: number): Promise<void> {
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

/** Ends the wait for an agent. Call it when the agent has the new policy and has reported its whole ledger. */
export async function endWaitForAgent(call: Call, agentId: string, policyVer: number): Promise<void> {
  const done = await endWait(call.db, { agentId, policyVer })
  for (const { store_id: storeId } of done) await finishHomeMove(call, storeId)
}

/** Replaces a wait for an agent by a wait for its successor, which continues the ledger. */
export async function waitForSuccessor({ db }: Call, agentId: string, successor: string): Promise<void> {
  const waits = await db
    .deleteFrom('home_move_wait')
    .where('agent_id', '=', agentId)
    .returning(['store_id', 'policy_ver'])
    .execute()
  for (const { store_id: storeId, policy_ver: policyVer } of waits)
    await waitFor(db, { storeId, agentId: successor, policyVer })
}

/** Ends all waits for a revoked agent, because it will report nothing more. */
export async function cancelWaitForAgent(call: Call, agentId: string): Promise<void> {
  await endWaitForAgent(call, agentId, Number.MAX_SAFE_INTEGER)
}

/** After the last report: denies what agents have reported, and then ends the move. */
async function finishHomeMove(call: Call, storeId: string): Promise<void> {
  if (await hasAwaitedAgents(call.db, storeId)) return
  await restartDenial(call, storeId)
  if (!(await denyNextRights(call, storeId))) await endHomeMove(call, storeId)
}

/** Ends the move if all agents have reported: the receipt home honours older receipts when it has the deny list. */
async function endHomeMove(call: JobCall, storeId: string): Promise<void> {
  const { db, services } = call
  if (await hasAwaitedAgents(db, storeId)) return
  const move = await db.selectFrom('home_move').select('moved_s').where('store_id', '=', storeId).executeTakeFirst()
  if (!move) return
  await storeHomeMove(call, storeId, move.moved_s)
  await raiseDocumentVersion(db, storeId)
  call.afterCommit(() => services.agents.storeChanged(storeId))
}

/** Denies the used rights that the operations did not deny, and ends the moves that waited only for this. */
export function continueHomeMoves(database: Database, services: Services): Promise<boolean> {
  return continueDenials(database, services, endHomeMove)
}

/**
 * True while the cloud does not know which deny list the receipt home needs: agents may have unreported redemptions
 * from before the move, or the cloud still denies used rights.
 */
export async function isMoveOpen(db: Db, storeId: string): Promise<boolean> {
  return (await hasAwaitedAgents(db, storeId)) || (await isDenying(db, storeId))
}

async function hasAwaitedAgents(db: Db, storeId: string): Promise<boolean> {
  return (await awaitedAgents(db, { storeId })).length > 0
}

const awaitedAgents = prepared((db, p: { storeId: string }) =>
  db.selectFrom('home_move_wait').select('agent_id').where('store_id', '=', p.storeId).limit(1),
)

export const moveReceiptHome = operation({
  name: 'moveReceiptHome',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('admin'),
  summary: 'Moves a store’s receipt home, which redeems its receipts, to another agent or to the cloud.',
  description:
    'The new receipt home first receives all used rights. Until every agent has reported its redemptions, earlier receipts need staff ' +
    'while the new receipt home is offline. This ends after a day at most, when the receipts expire, or when you revoke the missing agent.',
  changes: true,
  request: z.strictObject({ storeId: Id, home: Id.describe('An agentId of the store, or `cloud`.') }),
  response: z.strictObject({ ...Success, home: z.string(), homeEpoch: z.int() }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', home: 'agt_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, { storeId, home }) {
    const store = await ownStore(call, storeId)
    if (home !== 'cloud') await assertEnrolled(call, storeId, home)
    const policy = policyOf(store)
    call.changed(storeId)
    if (policy.home === home) return { success: true as const, home, homeEpoch: policy.homeEpoch }
    const moved = { ...policy, home, homeEpoch: policy.homeEpoch + 1 }
    await beginHomeMove(call, store, home)
    await storeFormerHome(call.db, store)
    await call.db
      .updateTable('store')
      .set({ policy: JSON.stringify(moved), policy_version: store.policy_version + 1 })
      .where('store_id', '=', storeId)
      .execute()
    await storeDocumentChanged(call, storeId)
    return { success: true as const, home, homeEpoch: moved.homeEpoch }
  },
})

async function assertEnrolled({ db }: Call, storeId: string, agentId: string): Promise<void> {
  const agent = await findAgent(db, agentId)
  if (agent?.store_id !== storeId || agent.revoked_ms !== null) throw notFound('agent')
}
