import { precondition } from '../../platform/foundation/failure.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { ProtectedItemRow } from '../../platform/persistence/tables/protection.ts'
import type { PurchaseLineRow, PurchaseRow } from '../../platform/persistence/tables/purchases.ts'
import { readItems } from '../../protection/items/item-queries.ts'
import { recallsByProduct } from '../../protection/items/recalls.ts'
import { hasRecalledUnit } from '../../protection/recalls/recalled-sales.ts'
import { readLines, readUnits } from '../../shop/purchases/queries.ts'

/**
 * Why a payment of this purchase cannot sell the item; undefined if it can. The tag may be on other goods since the
 * checkout: the price of the line then is not theirs.
 */
export function whyUnsaleable(
  item: ProtectedItemRow,
  purchase: Pick<PurchaseRow, 'store_id'>,
  line: Pick<PurchaseLineRow, 'product_id'> | undefined,
): string | undefined {
  if (item.store_id !== purchase.store_id) return 'in another store'
  if (item.item_status !== 'sellable') return item.item_status
  return item.product_id === null || item.product_id === line?.product_id ? undefined : 'of another product'
}

/** True if another purchase has meanwhile sold an item of this unpaid purchase, or the item is no longer for sale. */
export async function hasSoldItem(db: Db, purchase: PurchaseRow): Promise<boolean> {
  const units = (await readUnits(db, purchase.purchase_id)).filter(({ item_id: itemId }) => itemId !== null)
  if (units.length === 0) return false
  const lines = new Map((await readLines(db, purchase.purchase_id)).map((line) => [line.line_id, line]))
  const items = await readItems(
    db,
    units.flatMap(({ item_id: itemId }) => itemId ?? []),
  )
  return units.some(({ item_id: itemId, line_id: lineId }) => {
    const item = items.get(itemId ?? '')
    return item !== undefined && whyUnsaleable(item, purchase, lines.get(lineId)) !== undefined
  })
}

/**
 * Throws 409 if goods of this purchase were sold or recalled meanwhile, so that no shopper starts to pay for them. A
 * payment that has started takes effect (complete-purchase.ts). An unpaid basket blocks no item (ADR 0008).
 */
export async function assertForSale(db: Db, purchase: PurchaseRow): Promise<void> {
  if (await hasSoldItem(db, purchase))
    throw precondition(
      'item_already_paid',
      'an item of this purchase was sold meanwhile: start a new checkout without it',
      { allowedNext: [] },
    )
  if (await hasRecalledUnit(db, purchase, await recallsByProduct(db, purchase.tenant)))
    throw precondition('recalled', 'goods of this purchase are recalled: start a new checkout without them', {
      allowedNext: [],
    })
}
