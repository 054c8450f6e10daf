import { ProtectionPolicy } from '../../policy/store-policy.ts'
import { hashOfKey } from '../../cloud/accounts/api-keys.ts'
import { newId } from '../../policy/ids.ts'
import type { TestCloud } from './cloud.ts'

/** A product that a live store sells, cents. */
export interface LiveProduct {
  ean: string
  name: string
  priceCent: number
}

/** Puts stores of an account's live side straight into the database, with what they sell; answers their ids. */
export async function liveStores(cloud: TestCloud, key: string, options: { count?: number; package?: string; products?: readonly LiveProduct[] } = {}): Promise<string[]> {
  const { platform, db } = cloud
  const { account_id: accountId } = await db.database.reads.selectFrom('api_key').select('account_id').where('hash', '=', hashOfKey(key)).executeTakeFirstOrThrow()
  const tenant = `${accountId}.live`
  const nowMs = platform.clock.wall()
  return db.database.write(async (tx) => {
    const productIds: { product_id: string; price_cent: number }[] = []
    for (const { ean, name, priceCent } of options.products ?? []) {
      const known = await tx.selectFrom('product').select('product_id').where('tenant', '=', tenant).where('ean', '=', ean).executeTakeFirst()
      const row = { product_id: known?.product_id ?? newId('prd', platform), tenant, ean, name, name_lower: name.toLowerCase(), price_cent: priceCent, vat: 19, requires_human_verification: 0, tagged: 0, created_ms: nowMs, updated_ms: nowMs }
      if (!known) await tx.insertInto('product').values(row as never).execute()
      productIds.push({ product_id: row.product_id, price_cent: priceCent })
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
        receipt_count: 0,
        security_tag_mode: 'none',
        policy: JSON.stringify(ProtectionPolicy.parse({})),
        policy_version: 1,
        document_version: 1,
        deny_seq: 0,
        created_ms: nowMs,
      }))
      await tx.insertInto('store').values(rows as never).execute()
      const sold = rows.flatMap((store) => productIds.map((product) => ({ store_id: store.store_id, ...product })))
      if (sold.length > 0) await tx.insertInto('store_product').values(sold).execute()
    }
    return storeIds
  })
}
