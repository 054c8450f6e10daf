import type { Call } from '../../platform/operations/operation.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { ProductRecallRow, ProtectionAuthorizationRow } from '../../platform/persistence/tables/protection.ts'
import { redemptionsOf, unitsOfAuthorization } from '../leases/authorizations.ts'
import { revokeAuthorization } from '../leases/leases.ts'
import { revokeTokensOfLocker } from '../leases/return-units.ts'
import { hasRecalledGoods, hasRecalledUnit } from './publish-recalls.ts'
import { readItem } from '../items/item-queries.ts'
import { readLines } from '../../shop/purchases/queries.ts'
import { inStoresOf, isRecalled, recalledItems, type Recall } from '../items/recalls.ts'

/** Age of a sale whose tokens a recall revokes, ms. Receipts are valid for a day, tokens for five minutes. */
const SOLD_SINCE_MS = 25 * 3_600_000
const GUARD_SECONDS = 60

/** Revokes the unused tokens for recalled items, and those for whole purchases with such items or units. */
export async function revokeTokensOfRecalled(call: Call, recall: ProductRecallRow): Promise<void> {
  const { db, nowMs } = call
  const livesAfter = Math.floor(nowMs / 1_000) - GUARD_SECONDS
  const rows = new Map((await tokensOfItems(db, recall, livesAfter)).map((row) => [row.nonce, row]))
  for (const row of await tokensOfPurchases(db, recall, livesAfter, nowMs - SOLD_SINCE_MS))
    if (!rows.has(row.nonce) && (await coversRecalled(db, row, recall))) rows.set(row.nonce, row)
  for (const row of rows.values())
    if ((await redemptionsOf(db, row.nonce)).length < row.count)
      await revokeAuthorization(call, row, 'its goods are recalled')
  await closeLockers(call, recall)
}

/** Revokes the tokens of lockers in which orders with recalled goods wait. Each locker holds one order. */
async function closeLockers(call: Call, { tenant }: ProductRecallRow): Promise<void> {
  const orders = await call.db
    .selectFrom('pickup_order')
    .select(['tenant', 'store_id', 'order_id', 'locker_device_id'])
    .where('tenant', '=', tenant)
    .where('status', '=', 'ready')
    .where('locker_device_id', 'is not', null)
    .execute()
  for (const order of orders)
    if (order.locker_device_id !== null && (await hasRecalledGoods(call.db, order)))
      await revokeTokensOfLocker(call, order.locker_device_id, 'its goods are recalled')
}

/** True if the token is for a purchase with recalled goods, or for an item that its purchase line makes recalled. */
async function coversRecalled(db: Db, row: ProtectionAuthorizationRow, recall: Recalled): Promise<boolean> {
  const { store_id, purchase_id, item_id } = row
  if (purchase_id === null) return false
  if (item_id === null) return hasRecalledUnit(db, { store_id, purchase_id }, () => [recall])
  const lines = await readLines(db, purchase_id)
  const item = await readItem(db, item_id)
  const units = await unitsOfAuthorization(db, row.nonce)
  return units.some((unit) =>
    isRecalled([recall], { storeId: store_id, item, line: lines.find((line) => line.line_id === unit.line_id) }),
  )
}

type Recalled = Recall & Pick<ProductRecallRow, 'tenant'>

function tokensOfItems(db: Db, recall: Recalled, livesAfter: number): Promise<ProtectionAuthorizationRow[]> {
  return recalledItems(db, recall)
    .innerJoin('protection_authorization as a', 'a.item_id', 'i.item_id')
    .where('a.revoked_ms', 'is', null)
    .where('a.exp', '>', livesAfter)
    .selectAll('a')
    .execute()
}

function tokensOfPurchases(
  db: Db,
  recall: Recalled,
  livesAfter: number,
  soldSinceMs: number,
): Promise<ProtectionAuthorizationRow[]> {
  return db
    .selectFrom('purchase as p')
    .innerJoin('purchase_line as l', 'l.purchase_id', 'p.purchase_id')
    .innerJoin('protection_authorization as a', 'a.purchase_id', 'p.purchase_id')
    .where(inStoresOf('p', recall))
    .where('p.completed_ms', '>', soldSinceMs)
    .where('l.product_id', '=', recall.product_id)
    .where('a.revoked_ms', 'is', null)
    .where('a.exp', '>', livesAfter)
    .selectAll('a')
    .execute()
}
