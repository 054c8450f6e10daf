import type { Db } from '../persistence/database.ts'
import { prepared } from '../persistence/prepared.ts'
import type { UnitKey } from './rights.ts'

const touchPurchase = prepared((db, p: { purchaseId: string }) =>
  db
    .updateTable('purchase')
    .set((eb) => ({ rev: eb('rev', '+', 1) }))
    .where('purchase_id', '=', p.purchaseId),
)
const touchItem = prepared((db, p: { itemId: string }) =>
  db
    .updateTable('protected_item')
    .set((eb) => ({ rev: eb('rev', '+', 1) }))
    .where('item_id', '=', p.itemId),
)

/** A right has been used up, freed or taken back: kept answers about its purchase, or its item, are no longer true. */
export async function touchSubjects(db: Db, keys: readonly Pick<UnitKey, 'purchaseId' | 'lineId'>[]): Promise<void> {
  const purchases = new Set(keys.filter((key) => key.purchaseId !== '').map((key) => key.purchaseId))
  const items = new Set(keys.filter((key) => key.purchaseId === '').map((key) => key.lineId))
  for (const purchaseId of purchases) await touchPurchase(db, { purchaseId })
  for (const itemId of items) await touchItem(db, { itemId })
}
