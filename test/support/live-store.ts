import { ProtectionPolicy } from '../../policy/store-policy.ts'
import { hashOfKey } from '../../cloud/platform/accounts/api-keys.ts'
import { newId } from '../../policy/ids.ts'
import { newProductRow, findSharedProduct } from '../../cloud/shop/catalogue/queries.ts'
import { writeProducts } from '../../cloud/shop/catalogue/write-products.ts'
import type { Row } from '../../cloud/platform/persistence/schema.ts'
import type { TestCloud } from './cloud.ts'

/** A product of a live store; prices in cents. */
export interface LiveProduct {
  ean: string
  name: string
  priceCent: number
}

/** Inserts live stores, or stores of `mode`, with their products into the database and returns their ids. */
export async function liveStores(
  cloud: TestCloud,
  key: string,
  options: { count?: number; package?: string; products?: readonly LiveProduct[]; mode?: 'live' | 'test' } = {},
): Promise<string[]> {
  const { platform, db } = cloud
  const { account_id: accountId } = await db.database.reads
    .selectFrom('api_key')
    .select('account_id')
    .where('hash', '=', hashOfKey(key))
    .executeTakeFirstOrThrow()
  const tenant = `${accountId}.${options.mode ?? 'live'}`
  const nowMs = platform.clock.wall()
  return db.database.write(async (tx) => {
    const sold: { product: Row<'product'>; priceCent: number }[] = []
    for (const { ean, name, priceCent } of options.products ?? []) {
      const known = await findSharedProduct(tx, tenant, { ean })
      const product =
        known ??
        newProductRow(
          { name, price: priceCent / 100, vat: 19, tagged: false },
          { productId: newId('prd', platform), tenant, ean, nowMs },
        )
      if (!known) await writeProducts(tx, [{ before: undefined, after: product, here: undefined, listing: undefined }])
      sold.push({ product, priceCent })
    }
    const storeIds = Array.from({ length: options.count ?? 1 }, () => newId('st', platform))
    for (let i = 0; i < storeIds.length; i += 100) {
      const rows = storeIds.slice(i, i + 100).map((storeId, n) => ({
        store_id: storeId,
        tenant,
        legal_name: 'Hafenkante Handels GmbH',
        trading_name: `Filiale ${i + n + 1}`,
        street: 'Kai 1',
        city: 'Hamburg',
        postal_code: '20457',
        country_code: 'DE',
        package: options.package ?? 'GROW',
        has_scan_and_go: 1,
        has_offers: 1,
        security_tag_mode: 'none',
        policy: JSON.stringify(ProtectionPolicy.parse({})),
        policy_version: 1,
        document_version: 1,
        deny_seq: 0,
        created_ms: nowMs,
      }))
      await tx
        .insertInto('store')
        .values(rows as never)
        .execute()
      const listings = rows.flatMap((store) =>
        sold.map(({ product, priceCent }) => ({
          product,
          listing: { store_id: store.store_id, price_cent: priceCent, old_price_cent: null, updated_ms: nowMs },
        })),
      )
      await writeProducts(
        tx,
        listings.map(({ product, listing }) => ({ before: product, after: product, here: undefined, listing })),
      )
    }
    return storeIds
  })
}
