import { RIGHT_CLASSES } from '../../../policy/vocabulary.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { prepared } from '../../platform/persistence/prepared.ts'
import { findRight, storeReturned, type UnitKey } from '../rights/rights.ts'

/**
 * Unit of an item that was paid at another till, without a purchase in untag. The unit numbers count the sales of the
 * item from 0, so that each late report concerns the right sale.
 */
type StandaloneUnit = Omit<UnitKey, 'rightClass'>

const endedUnits = prepared((db, p: { itemId: string }) =>
  db.selectFrom('unit_right').select('unit_no').where('line_id', '=', p.itemId).where('returned_by', 'is not', null),
)

/** Current standalone unit of an item. */
export async function standaloneUnitOf(db: Db, itemId: string): Promise<StandaloneUnit> {
  const ended = await endedUnits(db, { itemId })
  return { lineId: itemId, unitNo: Math.max(-1, ...ended.map((row) => row.unit_no)) + 1, purchaseId: '' }
}

/**
 * Ends the standalone unit of an item that is back on the shelf. The next sale gets a new unit. `by`: id of the return.
 */
export async function endStandaloneUnit({ db, nowMs }: Call, itemId: string, by: string): Promise<void> {
  const unit = await standaloneUnitOf(db, itemId)
  const stored = []
  for (const rightClass of RIGHT_CLASSES) {
    const key = { ...unit, rightClass }
    const row = await findRight(db, key)
    if (row) stored.push({ key, row })
  }
  await storeReturned(db, stored, by, nowMs)
}
