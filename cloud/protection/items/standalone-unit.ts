import type { Call } from '../../operations/operation.ts'
import type { Db } from '../../persistence/database.ts'
import { prepared } from '../../persistence/prepared.ts'
import { revokeLease } from '../leases/return-units.ts'
import { findRight, storeReturned, useRight, viewRight, type UnitKey } from '../rights/rights.ts'

/**
 *   paid elsewhere: unit 0 ─ back on the shelf ─▶ paid elsewhere: unit 1 ─ back on the shelf ─▶ …
 *
 * An item that is paid without a purchase of ours stands for its own unit. Each time that it is sold it is another one: what was used of
 * it before, and what is told of that late, counts there.
 */
export type StandaloneUnit = Omit<UnitKey, 'rightClass'>

const endedUnits = prepared((db, p: { itemId: string }) =>
  db.selectFrom('unit_right').select('unit_no').where('line_id', '=', p.itemId).where('returned_by', 'is not', null),
)

/** The unit that an item is when no purchase of ours has it. */
export async function standaloneUnitOf(db: Db, itemId: string): Promise<StandaloneUnit> {
  const ended = await endedUnits(db, { itemId })
  return { lineId: itemId, unitNo: Math.max(-1, ...ended.map((row) => row.unit_no)) + 1, purchaseId: '' }
}

const CLASSES = ['release', 'exit'] as const

/** The item is in the store's hands again: what was given for it is taken back. */
export async function revokeStandaloneLeases(call: Call, itemId: string): Promise<void> {
  const unit = await standaloneUnitOf(call.db, itemId)
  for (const rightClass of CLASSES) await revokeLease(call, { ...unit, rightClass }, 'the item came back')
}

/** It is on the shelf again: whatever is sold next is another unit. `by`: what that is known by. */
export async function endStandaloneUnit({ db, nowMs }: Call, itemId: string, by: string): Promise<void> {
  const unit = await standaloneUnitOf(db, itemId)
  for (const rightClass of CLASSES) {
    const right = { ...unit, rightClass }
    const row = await findRight(db, right)
    if (!row) continue
    if (viewRight(row, nowMs).state !== 'used')
      await useRight(db, right, { nonce: by, deviceId: '', redemptionId: by }, row.failures)
    await storeReturned(db, right, by)
  }
}
