import type { Evidence } from '../../policy/journal.ts'
import type { Db } from '../persistence/database.ts'
import { prepared } from '../persistence/prepared.ts'
import type { UnitRightRow } from '../persistence/tables/protection.ts'
import { endLease, type Witness } from './evidence.ts'
import type { EvidenceScope } from './evidence-scope.ts'
import { raiseException } from './exceptions.ts'
import { viewRight, type RightView, type UnitKey } from './rights.ts'

/**
 *   home gives ─ told ─▶ nobody else is granted it ─ the other's own word of it comes, or the home's that nothing came of it ─▶ over
 *
 * Rights of receipts that their home has given to another agent of the store, which may be cut off from the cloud for long.
 */
export type Given = Extract<Evidence, { kind: 'given' }>
export type GivenBack = Extract<Evidence, { kind: 'given_back' }>

const GUARD_SECONDS = 60

const UNKNOWN = 'nobody knows whether the last try worked'

const insert = prepared((db, p: { lineId: string; unitNo: number; rightClass: string; redemptionId: string; storeId: string; agentId: string; untilS: number }) =>
  db
    .insertInto('given_right')
    .values({ line_id: p.lineId, unit_no: p.unitNo, right_class: p.rightClass, redemption_id: p.redemptionId, store_id: p.storeId, agent_id: p.agentId, state: 'given', until_s: p.untilS })
    .onConflict((c) => c.doNothing()),
)
const mark = prepared((db, p: { lineId: string; unitNo: number; rightClass: string; purchaseId: string }) =>
  db
    .insertInto('unit_right')
    .values({ line_id: p.lineId, unit_no: p.unitNo, right_class: p.rightClass, purchase_id: p.purchaseId, state: 'free', failures: 0, was_given: 1 })
    .onConflict((c) => c.columns(['line_id', 'unit_no', 'right_class']).doUpdateSet({ was_given: 1 })),
)
const setState = prepared((db, p: { redemptionId: string; storeId: string; state: string }) =>
  db
    .updateTable('given_right')
    .set({ state: p.state })
    .where('redemption_id', '=', p.redemptionId)
    .where('store_id', '=', p.storeId)
    .where('state', '<>', 'failed')
    .returning(['line_id', 'right_class']),
)
const purchaseOf = prepared((db, p: { lineId: string }) => db.selectFrom('purchase_line').select('purchase_id').where('line_id', '=', p.lineId))
/** Those of which whoever has them has not told anything, with when that agent was revoked. */
const standing = prepared((db, p: { lineId: string; unitNo: number; rightClass: string }) =>
  db
    .selectFrom('given_right')
    .leftJoin('agent', 'agent.agent_id', 'given_right.agent_id')
    .leftJoin('redemption', (join) =>
      join
        .onRef('redemption.redemption_id', '=', 'given_right.redemption_id')
        .onRef('redemption.line_id', '=', 'given_right.line_id')
        .onRef('redemption.unit_no', '=', 'given_right.unit_no'),
    )
    .select(['given_right.agent_id', 'given_right.state', 'agent.revoked_ms'])
    .where('given_right.line_id', '=', p.lineId)
    .where('given_right.unit_no', '=', p.unitNo)
    .where('given_right.right_class', '=', p.rightClass)
    .where('given_right.state', '<>', 'failed')
    .where('redemption.redemption_id', 'is', null),
)

/** A home has given rights to another agent. Answers false when the receipt is unknown. */
export async function applyGiven(scope: EvidenceScope, witness: Witness, { redemptionId, nonce, rightClass, ordinals, agentId }: Given): Promise<boolean> {
  const { db, facts, uses } = scope
  const purchase = await facts.purchaseOfReceipt(nonce)
  if (purchase?.tenant !== scope.tenant) return false
  const { storeId } = witness
  if (purchase.store_id !== storeId) {
    await raiseException(scope, { storeId, kind: 'foreign_evidence', subject: redemptionId, detail: 'rights of a receipt of another store were given away' })
    return true
  }
  const named = new Set(ordinals)
  const units = (await facts.unitsOf(purchase.purchase_id)).filter(({ receipt_index: n }) => n !== null && named.has(n))
  // Rights are written by others now.
  await uses.flush()
  uses.forget()
  for (const unit of units) {
    const key: UnitKey = { lineId: unit.line_id, unitNo: unit.unit_no, rightClass, purchaseId: purchase.purchase_id }
    await insert(db, { ...key, redemptionId, storeId, agentId, untilS: (purchase.receipt_exp ?? Math.floor(scope.nowMs / 1_000)) + GUARD_SECONDS })
    await mark(db, key)
    await endLease(scope, key, nonce, agentId)
    scope.due.subjects.push(key)
  }
  return true
}

/** What the other agent told the home: nothing came of it, or nobody knows. */
export async function applyGivenBack(scope: EvidenceScope, { storeId }: Witness, { redemptionId, outcome }: GivenBack): Promise<boolean> {
  for (const { line_id: lineId } of await setState(scope.db, { redemptionId, storeId, state: outcome })) {
    for (const { purchase_id: purchaseId } of await purchaseOf(scope.db, { lineId })) scope.due.subjects.push({ lineId, purchaseId })
  }
  return true
}

/**
 * What a right means now to whoever asks for the agent `agentId`: what its home has given to another agent counts as used, until that agent
 * has told itself what became of it. One that was revoked tells nothing any more: then nobody knows.
 */
export async function viewGranting(db: Db, key: UnitKey, row: UnitRightRow | undefined, nowMs: number, agentId: string | null): Promise<RightView> {
  const right = viewRight(row, nowMs)
  if (!row?.was_given || right.state === 'used') return right
  const others = (await standing(db, key)).filter((given) => given.agent_id !== agentId)
  if (others.some(({ state, revoked_ms: revokedMs }) => state === 'given' && revokedMs === null)) return { state: 'used' }
  return others.length === 0 ? right : { ...right, staffReason: right.staffReason ?? UNKNOWN }
}

/** Forgets what was given of receipts that have ended. */
export async function pruneGiven(db: Db, nowMs: number): Promise<void> {
  await db.deleteFrom('given_right').where('until_s', '<=', Math.floor(nowMs / 1_000)).execute()
}
