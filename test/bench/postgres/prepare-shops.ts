import type { Platform } from '../../../policy/platform.ts'
import type { Database } from '../../../cloud/platform/persistence/database.ts'
import { benchAccount } from '../bench-cloud.ts'
import { addStore, fillStore } from '../catalogue/fill-store.ts'
import { sellItems } from '../sold-items.ts'

/** Amount of data to create. */
export interface ShopsWanted {
  /** For each account to create: the number of paid items whose tags the account releases. */
  readonly items: readonly number[]
  /** Number of products in each store. */
  readonly products: number
}

/** An account, with the ids for its requests. */
export interface Shop {
  readonly authorization: string
  /** Store whose products the requests read and buy. */
  readonly storeId: string
  /** Store that receives new products. */
  readonly growingStoreId: string
  readonly deviceId: string
  /** EPCs of paid items, each in a separate purchase. */
  readonly epcs: readonly string[]
}

/** Address of a server and its accounts. */
export interface PreparedShops {
  readonly port: number
  /** Path before the name of an operation. */
  readonly base: string
  readonly shops: readonly Shop[]
}

/** Creates the accounts in an empty database. */
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
