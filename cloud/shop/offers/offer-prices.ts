import type { Db } from '../../platform/persistence/database.ts'

/**
 * Returns the lowest offer price (cents) by EAN among the active offers of a store. EANs without an offer are absent.
 */
export async function offerPrices(
  db: Db,
  storeId: string,
  eans: readonly string[],
  nowMs: number,
): Promise<Map<string, number>> {
  if (eans.length === 0) return new Map()
  const rows = await db
    .selectFrom('offer')
    .innerJoin('offer_price', 'offer_price.list_id', 'offer.list_id')
    .select(['offer_price.ean', (eb) => eb.fn.min('offer_price.price_cent').as('price_cent')])
    .where('offer.store_id', '=', storeId)
    .where('offer.is_active', '=', 1)
    .where('offer.valid_to_ms', '>', nowMs)
    .where('offer.valid_from_ms', '<=', nowMs)
    .where('offer_price.ean', 'in', eans)
    .groupBy('offer_price.ean')
    .execute()
  return new Map(rows.map((row) => [row.ean, Number(row.price_cent)]))
}
