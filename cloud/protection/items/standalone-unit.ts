import type { RightClass } from '../../../policy/vocabulary.ts'
import type { Call } from '../../platform/operations/operation.ts'
import { groupBy, type Db } from '../../platform/persistence/database.ts'
import { prepared, preparedForMany } from '../../platform/persistence/prepared.ts'
import { storeReturned, type UnitKey } from '../rights/rights.ts'

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

const rightsOfItems = preparedForMany((db, itemIds) =>
  db.selectFrom('unit_right').selectAll().where('line_id', 'in', itemIds),
)

/**
 * Ends the standalone units of items that are back on the shelf. The next sale gets a new unit. `by`: id of the return.
 */
export async function endStandaloneUnits({ db, nowMs }: Call, itemIds: readonly string[], by: string): Promise<void> {
  const ofItems = groupBy(await rightsOfItems(db, itemIds), (row) => row.line_id)
  const stored = [...ofItems.values()].flatMap((rows) => {
    const ended = rows.flatMap((row) => (row.returned_by === null ? [] : [row.unit_no]))
    const unitNo = Math.max(-1, ...ended) + 1
    return rows
      .filter((row) => row.unit_no === unitNo)
      .map((row) => ({
        key: { lineId: row.line_id, unitNo, purchaseId: '', rightClass: row.right_class as RightClass },
        row,
      }))
  })
  await storeReturned(db, stored, by, nowMs)
}
