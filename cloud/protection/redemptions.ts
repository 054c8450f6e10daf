import { joinUses, type UnitUse } from '../../policy/unit-uses.ts'
import type { Outcome } from '../../policy/vocabulary.ts'
import type { Db } from '../persistence/database.ts'
import { fieldsOf, prepared } from '../persistence/prepared.ts'
import type { RedemptionRow, UnitRightRow } from '../persistence/tables/protection.ts'
import { findRight, freeRight, noteOutcome, useRight, type UnitKey } from './rights.ts'

/** Redemptions as rows: facts that are only ever added, each with the unit that it was for. */

export type NewRedemption = Omit<RedemptionRow, 'outcome' | 'resolved_by' | 'reported'>

const insert = prepared((db, p: NewRedemption) =>
  db
    .insertInto('redemption')
    .values(fieldsOf(p, ['nonce', 'step', 'redemption_id', 'tenant', 'source', 'agent_id', 'device_id', 'at_ms', 'event_id', 'line_id', 'unit_no', 'right_class']))
    .onConflict((c) => c.columns(['nonce', 'step', 'redemption_id']).doNothing())
    .returning('step'),
)
const ofUnit = prepared((db, p: { lineId: string; unitNo: number; rightClass: string }) =>
  db.selectFrom('redemption').selectAll().where('line_id', '=', p.lineId).where('unit_no', '=', p.unitNo).where('right_class', '=', p.rightClass),
)
const byId = prepared((db, p: { redemptionId: string; tenant: string }) =>
  db.selectFrom('redemption').selectAll().where('redemption_id', '=', p.redemptionId).where('tenant', '=', p.tenant).orderBy('nonce').orderBy('step'),
)

/** Adds a fact; false when it was known. */
export async function addRedemption(db: Db, redemption: NewRedemption): Promise<boolean> {
  return (await insert(db, redemption)).length > 0
}

/** The tenant's redemptions of this id: one for each step. */
export function findRedemptions(db: Db, tenant: string, redemptionId: string): Promise<RedemptionRow[]> {
  return byId(db, { redemptionId, tenant })
}

const writeOutcome = prepared((db, p: { nonce: string; step: number; redemptionId: string; outcome: string }) =>
  db.updateTable('redemption').set({ outcome: p.outcome }).where('nonce', '=', p.nonce).where('step', '=', p.step).where('redemption_id', '=', p.redemptionId),
)

/** Writes what an agent or a device says of the outcome of one. */
export async function updateOutcome(db: Db, { nonce, step, redemption_id: redemptionId }: RedemptionRow, outcome: Outcome): Promise<void> {
  await writeOutcome(db, { nonce, step, redemptionId, outcome })
}

/** Writes what is known of the outcome of one that staff have looked at. */
export async function updateRedemption(db: Db, { nonce, step, redemption_id }: RedemptionRow, change: Partial<Pick<RedemptionRow, 'outcome' | 'resolved_by' | 'reported'>>): Promise<void> {
  await db.updateTable('redemption').set(change).where('nonce', '=', nonce).where('step', '=', step).where('redemption_id', '=', redemption_id).execute()
}

/** The unit that a redemption used up and its right as it stands; undefined for a fixture. */
export async function unitOf(db: Db, { line_id, unit_no, right_class }: RedemptionRow): Promise<{ key: UnitKey; right: UnitRightRow | undefined } | undefined> {
  if (line_id === null || unit_no === null || right_class === null) return undefined
  const key = { lineId: line_id, unitNo: unit_no, rightClass: right_class as UnitKey['rightClass'] }
  const right = await findRight(db, { ...key, purchaseId: '' })
  return { key: { ...key, purchaseId: right?.purchase_id ?? '' }, right }
}

/**
 * Brings the right of a unit to what all its redemptions come to; answers whether somebody got two for one. A lease stays
 * beside what nobody knows or what failed, unless it has just ended. `right`: where it has just been read.
 */
export async function settleRight(db: Db, key: UnitKey, { leaseEnded = false, ...known }: { leaseEnded?: boolean; right?: UnitRightRow | undefined } = {}): Promise<{ isDouble: boolean; isReturned: boolean }> {
  const { lineId, unitNo, rightClass } = key
  const { use, failures, isDouble } = joinUses((await ofUnit(db, { lineId, unitNo, rightClass })).map(useOf))
  const right = known.right ?? (await findRight(db, key))
  // Goods that came back are nobody's to take off a second time.
  if (right?.outcome === 'returned') return { isDouble, isReturned: true }
  if (right?.state === 'leased' && !leaseEnded && (use === null || use.outcome === 'unknown')) return { isDouble, isReturned: false }
  if (use) {
    const isSame = right?.state === 'used' && right.redemption_id === use.redemptionId && right.nonce === use.nonce && right.failures === failures
    if (!isSame) await useRight(db, key, use, failures)
    if (use.outcome !== null && !(isSame && right.outcome === use.outcome)) await noteOutcome(db, use.redemptionId, key, use.outcome)
  } else if (right) await freeRight(db, key, failures)
  return { isDouble, isReturned: false }
}

function useOf(row: RedemptionRow): UnitUse {
  return {
    redemptionId: row.redemption_id,
    nonce: row.nonce,
    source: row.source as UnitUse['source'],
    deviceId: row.device_id,
    atMs: row.at_ms,
    outcome: row.outcome as Outcome | null,
  }
}
