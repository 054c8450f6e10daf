import type { Db } from '../../persistence/database.ts'
import { preparedForMany } from '../../persistence/prepared-many.ts'
import type { UnitKey } from './rights.ts'

const touchPurchases = preparedForMany((db, ids) =>
  db
    .updateTable('purchase')
    .set((eb) => ({ rev: eb('rev', '+', 1) }))
    .where('purchase_id', 'in', ids),
)
const touchItems = preparedForMany((db, ids) =>
  db
    .updateTable('protected_item')
    .set((eb) => ({ rev: eb('rev', '+', 1) }))
    .where('item_id', 'in', ids),
)

/** A right has been used up, freed or taken back: kept answers about its purchase, or its item, are no longer true. */
export async function touchSubjects(db: Db, keys: readonly Pick<UnitKey, 'purchaseId' | 'lineId'>[]): Promise<void> {
  await touchPurchases(
    db,
    keys.filter((key) => key.purchaseId !== '').map((key) => key.purchaseId),
  )
  await touchItems(
    db,
    keys.filter((key) => key.purchaseId === '').map((key) => key.lineId),
  )
}
