import type { SelectQueryBuilder } from 'kysely'
import type { ItemStatus } from '../../../policy/vocabulary.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { DB } from '../../platform/persistence/tables.ts'
import type { Row } from '../../platform/persistence/schema.ts'

/** A receipt covers an alarm from this time before it, ms. */
const RECEIPT_BEFORE_MS = 60 * 60_000
/** A payment of the same goods after the alarm covers it for this time, ms: the shopper goes back and pays. */
const RECEIPT_AFTER_MS = 10 * 60_000
/** A later purchase of only the same product may be anybody's. This covers the clocks of gate and till, ms. */
const PRODUCT_AFTER_MS = 60_000
/** Maximum purchases among which the receipt of an alarm is searched by product: the latest ones. */
const RECEIPTS_LIMIT = 1_000
/** Of these, those with the product of the alarm that are read, and their lines and pieces of a line: a hint only. */
const WITH_PRODUCT_LIMIT = 20
const LINES_LIMIT = 50
const UNITS_LIMIT = 20
const CAME_BACK: ReadonlySet<string> = new Set<ItemStatus>(['returned', 'cancelled'])

/** A paid purchase that may cover the goods of an alarm. */
export interface FittingReceipt {
  /** `item`: the purchase is bound to this tag. `product`: it contains the product, not bound to another tag. */
  readonly match: 'item' | 'product'
  readonly purchaseId: string
  readonly paidMs: number
}

/**
 * Finds the newest purchase of the store that was paid in the hour before the alarm, was not cancelled, and contains the
 * item of the tag, or else the product with a unit that is bound to no other tag. A payment after the alarm counts for ten
 * minutes if it is bound to the tag, else for one.
 */
export async function receiptOfAlarm(
  db: Db,
  storeId: string,
  alarm: { occurredMs: number; item: Row<'protected_item'> | undefined; product: { ean: string } | undefined },
): Promise<FittingReceipt | undefined> {
  const { occurredMs, item, product } = alarm
  // Goods that came back are not paid any more.
  if (item && CAME_BACK.has(item.item_status)) return undefined
  const recent = db
    .selectFrom('purchase')
    .select(['purchase_id', 'completed_ms', 'tenant'])
    .where('store_id', '=', storeId)
    .where('completed_ms', '>=', occurredMs - RECEIPT_BEFORE_MS)
    .where('completed_ms', '<=', occurredMs + PRODUCT_AFTER_MS)
    .where('status', 'in', ['SUCCESS', 'UNLOADED'])
    .orderBy('completed_ms', 'desc')
  const ofItem =
    !item || item.purchase_id === null
      ? undefined
      : await db
          .selectFrom('purchase_unit as u')
          .innerJoin('purchase as p', 'p.purchase_id', 'u.purchase_id')
          .select(['p.purchase_id', 'p.completed_ms'])
          .where('u.item_id', '=', item.item_id)
          .where('u.purchase_id', '=', item.purchase_id)
          .where('u.taken_back', 'is', null)
          .where('p.store_id', '=', storeId)
          .where('p.completed_ms', '>=', occurredMs - RECEIPT_BEFORE_MS)
          .where('p.completed_ms', '<=', occurredMs + RECEIPT_AFTER_MS)
          .where('p.status', 'in', ['SUCCESS', 'UNLOADED'])
          .orderBy('p.completed_ms', 'desc')
          .limit(1)
          .executeTakeFirst()
  const ofProduct =
    ofItem || !product ? undefined : await purchaseWithProduct(db, recent.limit(RECEIPTS_LIMIT), product.ean)
  const row = ofItem ?? ofProduct
  return (
    row && {
      match: ofItem ? 'item' : 'product',
      purchaseId: row.purchase_id,
      paidMs: row.completed_ms ?? occurredMs,
    }
  )
}

/** The newest of these purchases that contains the product with a unit that is bound to no tag and did not come back. */
async function purchaseWithProduct(
  db: Db,
  recent: SelectQueryBuilder<DB, 'purchase', Pick<Row<'purchase'>, 'purchase_id' | 'completed_ms' | 'tenant'>>,
  ean: string,
): Promise<Pick<Row<'purchase'>, 'purchase_id' | 'completed_ms'> | undefined> {
  const withProduct = db
    .selectFrom(recent.as('r'))
    .select(['r.purchase_id', 'r.completed_ms', 'r.tenant'])
    // One look-up for each purchase, however many lines it has.
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('purchase_line as s')
          .select('s.line_id')
          .whereRef('s.tenant', '=', 'r.tenant')
          .whereRef('s.purchase_id', '=', 'r.purchase_id')
          .where('s.ean', '=', ean),
      ),
    )
    .orderBy('r.completed_ms', 'desc')
    .limit(WITH_PRODUCT_LIMIT)
  return db
    .selectFrom(withProduct.as('p'))
    .select(['p.purchase_id', 'p.completed_ms'])
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('purchase_line as l')
          .leftJoin('purchase_unit as u', 'u.line_id', 'l.line_id')
          .select('l.line_id')
          .whereRef('l.tenant', '=', 'p.tenant')
          .whereRef('l.purchase_id', '=', 'p.purchase_id')
          .where('l.ean', '=', ean)
          .where('l.line_no', '<', LINES_LIMIT)
          .where((eb) => eb.or([eb('u.unit_no', 'is', null), eb('u.unit_no', '<=', UNITS_LIMIT)]))
          .where('u.item_id', 'is', null)
          .where('u.taken_back', 'is', null)
          .where((eb) =>
            eb.not(
              eb.exists(
                eb
                  .selectFrom('unit_right as r')
                  .select('r.line_id')
                  .whereRef('r.line_id', '=', 'u.line_id')
                  .whereRef('r.unit_no', '=', 'u.unit_no')
                  .where('r.returned_by', 'is not', null),
              ),
            ),
          ),
      ),
    )
    .orderBy('p.completed_ms', 'desc')
    .limit(1)
    .executeTakeFirst()
}
