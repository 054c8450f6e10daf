import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { readLines } from '../../shop/purchases/queries.ts'
import { readItem } from '../items/item-queries.ts'
import { findRecall, isRecalled, recallReader } from '../items/recalls.ts'
import { unitsOfAuthorization } from '../leases/authorizations.ts'
import { hasRecalledGoods, hasRecalledUnit } from './publish-recalls.ts'

/** True if the token is for goods that this recall stops. False if it has ended. */
export async function coversRecalled(
  db: Db,
  { tenant, recallId }: { tenant: string; recallId: string },
  { nonce, device_id, store_id: storeId, purchase_id, item_id }: Row<'protection_authorization'>,
): Promise<boolean> {
  const recall = await findRecall(db, tenant, recallId)
  if (recall?.ended_ms !== null) return false
  if (item_id === null && purchase_id === null) return isLockerOfRecalled(db, device_id, recall)
  if (item_id === null)
    return hasRecalledUnit(db, { store_id: storeId, purchase_id: purchase_id ?? '' }, () => [recall])
  const item = await readItem(db, item_id)
  if (isRecalled([recall], { storeId, item })) return true
  if (purchase_id === null) return false
  const lines = await readLines(db, purchase_id)
  const units = await unitsOfAuthorization(db, nonce)
  return units.some((unit) =>
    isRecalled([recall], { storeId, item, line: lines.find((line) => line.line_id === unit.line_id) }),
  )
}

/** True if an order with recalled goods waits in this locker. Each locker holds one order. */
async function isLockerOfRecalled(db: Db, deviceId: string, { tenant }: Row<'product_recall'>): Promise<boolean> {
  const order = await db
    .selectFrom('pickup_order')
    .select(['store_id', 'order_id'])
    .where('locker_device_id', '=', deviceId)
    .where('status', '=', 'ready')
    .executeTakeFirst()
  return order !== undefined && hasRecalledGoods(db, order, recallReader(db, tenant))
}
