import { parseEpc } from '../../../policy/gs1/epc.ts'
import { eanOfGtin14 } from '../../../policy/gs1/gtin.ts'
import type { Db } from '../../persistence/database.ts'
import type { ProtectedItemRow } from '../../persistence/tables/protection.ts'

/** A receipt covers an alarm from this time before it, ms. */
export const RECEIPT_BEFORE_MS = 60 * 60_000
/** A payment after the alarm covers it for this time, ms: the shopper goes back and pays. */
export const RECEIPT_AFTER_MS = 10 * 60_000

/** Product of an alarm as guards see it. */
export interface AlarmProduct {
  readonly productId: string
  readonly ean: string
  readonly name: string
  readonly brand: string | null
  readonly imageUrl: string | null
  readonly priceCent: number
}

/** The product of the item, else the product whose GTIN the tag contains, with its price in this store. */
export async function productOfAlarm(
  db: Db,
  tenant: string,
  storeId: string,
  { item, epc }: { item: ProtectedItemRow | undefined; epc: string | undefined },
): Promise<AlarmProduct | undefined> {
  const productId = item?.product_id ?? undefined
  const ean = item?.ean ?? eanOfTag(epc)
  if (productId === undefined && ean === undefined) return undefined
  const products = db
    .selectFrom('product as p')
    .leftJoin('store_product as s', (join) =>
      join.onRef('s.product_id', '=', 'p.product_id').on('s.store_id', '=', storeId),
    )
    .select(['p.product_id', 'p.ean', 'p.name', 'p.brand', 'p.image_url'])
    .select((eb) => eb.fn.coalesce('s.price_cent', 'p.price_cent').as('price_cent'))
    .where('p.tenant', '=', tenant)
  const row = await (
    productId === undefined ? products.where('p.ean', '=', ean ?? '') : products.where('p.product_id', '=', productId)
  ).executeTakeFirst()
  return (
    row && {
      productId: row.product_id,
      ean: row.ean,
      name: row.name,
      brand: row.brand,
      imageUrl: row.image_url,
      priceCent: item?.price_cent ?? Number(row.price_cent),
    }
  )
}

/** EAN of the GTIN in an EPC. */
function eanOfTag(epc: string | undefined): string | undefined {
  const gtin14 = epc === undefined ? undefined : parseEpc(epc)?.gtin14
  return gtin14 === undefined ? undefined : eanOfGtin14(gtin14)
}

/** A paid purchase that may cover the goods of an alarm. */
export interface FittingReceipt {
  /** `item`: the purchase is bound to this tag. `product`: it contains the product, not bound to another tag. */
  readonly match: 'item' | 'product'
  readonly purchaseId: string
  readonly paidMs: number
}

/**
 * Finds the newest purchase of the store that was paid in the hour before the alarm or the ten minutes after it, was
 * not cancelled, and contains the item of the tag, or else the product with a unit that is bound to no other tag.
 */
export async function receiptOfAlarm(
  db: Db,
  storeId: string,
  alarm: { occurredMs: number; itemId: string | undefined; product: AlarmProduct | undefined },
): Promise<FittingReceipt | undefined> {
  const { occurredMs, itemId, product } = alarm
  const paid = db
    .selectFrom('purchase as p')
    .innerJoin('purchase_line as l', 'l.purchase_id', 'p.purchase_id')
    .leftJoin('purchase_unit as u', 'u.line_id', 'l.line_id')
    .select(['p.purchase_id', 'p.completed_ms'])
    .where('p.store_id', '=', storeId)
    .where('p.completed_ms', '>=', occurredMs - RECEIPT_BEFORE_MS)
    .where('p.completed_ms', '<=', occurredMs + RECEIPT_AFTER_MS)
    .where('p.status', 'in', ['SUCCESS', 'UNLOADED'])
    .where('u.taken_back', 'is', null)
    .orderBy('p.completed_ms', 'desc')
    .limit(1)
  const ofItem = itemId === undefined ? undefined : await paid.where('u.item_id', '=', itemId).executeTakeFirst()
  const ofProduct =
    ofItem || !product
      ? undefined
      : await paid
          .where('u.item_id', 'is', null)
          .where((eb) => eb.or([eb('l.product_id', '=', product.productId), eb('l.ean', '=', product.ean)]))
          .executeTakeFirst()
  const row = ofItem ?? ofProduct
  return (
    row && {
      match: ofItem ? 'item' : 'product',
      purchaseId: row.purchase_id,
      paidMs: row.completed_ms ?? occurredMs,
    }
  )
}
