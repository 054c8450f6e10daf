import type { Platform } from '../../policy/platform.ts'
import type { Database } from '../../cloud/persistence/database.ts'
import { benchAccount } from '../bench-cloud.ts'
import { addStore, fillStore } from '../catalogue/fill-store.ts'
import { sellItems } from '../sold-items.ts'

/** How much there is. */
export interface ShopsWanted {
  /** Paid items that each account releases; one number an account. */
  readonly items: readonly number[]
  /** Products of each store. */
  readonly products: number
}

/** An account, and what its requests name. */
export interface Shop {
  readonly authorization: string
  /** Its products are read and bought. */
  readonly storeId: string
  /** New products come here. */
  readonly growingStoreId: string
  readonly deviceId: string
  /** EPCs of paid items, each in a separate purchase. */
  readonly epcs: readonly string[]
}

/** Address of a server and its accounts. */
export interface PreparedShops {
  readonly port: number
  /** What the names of operations are put behind. */
  readonly base: string
  readonly shops: readonly Shop[]
}

/** Makes the accounts in an empty database. */
export async function prepareShops(
  database: Database,
  { items, products }: ShopsWanted,
  platform: Platform,
): Promise<Shop[]> {
  const shops: Shop[] = []
  for (const [i, count] of items.entries()) {
    const { tenant, key } = await benchAccount(database, platform, `bench ${i}`)
    const [storeId, growingStoreId] = [
      await addStore(database, tenant, platform),
      await addStore(database, tenant, platform),
    ]
    await fillStore(database, { tenant, storeId, from: 0, to: products }, platform)
    shops.push({
      authorization: `Bearer ${key}`,
      storeId,
      growingStoreId,
      ...(await sellItems(database, tenant, count, platform)),
    })
  }
  return shops
}
