import type { Db } from '../persistence/database.ts'
import { prepared } from '../persistence/prepared.ts'
import type { StoreRow } from '../persistence/tables/stores.ts'

const byId = prepared((db, p: { storeId: string }) =>
  db.selectFrom('store').selectAll().where('store_id', '=', p.storeId),
)

/** The store with this id, of any tenant. */
export async function findStore(db: Db, storeId: string): Promise<StoreRow | undefined> {
  const [row] = await byId(db, { storeId })
  return row
}

/** The stores of a tenant in the order of their ids, which is the order they were made in. */
export function listStores(db: Db, tenant: string, limit: number): Promise<StoreRow[]> {
  return db.selectFrom('store').selectAll().where('tenant', '=', tenant).orderBy('store_id').limit(limit).execute()
}

/** Notes that what agents are told of a store has changed (policy, devices, operators): the next version of its signed policy. */
export async function raiseDocumentVersion(db: Db, storeId: string): Promise<void> {
  await db
    .updateTable('store')
    .set((eb) => ({ document_version: eb('document_version', '+', 1) }))
    .where('store_id', '=', storeId)
    .execute()
}

/** How many stores a tenant has. */
export async function countStores(db: Db, tenant: string): Promise<number> {
  const { count } = await db
    .selectFrom('store')
    .select((eb) => eb.fn.countAll().as('count'))
    .where('tenant', '=', tenant)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Adds a store. */
export async function insertStoreRow(db: Db, row: StoreRow): Promise<void> {
  await db.insertInto('store').values(row).execute()
}

/** Sets columns of a store. */
export async function updateStoreRow(db: Db, storeId: string, set: Partial<StoreRow>): Promise<void> {
  await db.updateTable('store').set(set).where('store_id', '=', storeId).execute()
}

/** The packages of a tenant's stores, each once. */
export async function packagesOf(db: Db, tenant: string): Promise<string[]> {
  const rows = await db.selectFrom('store').select('package').distinct().where('tenant', '=', tenant).execute()
  return rows.map((row) => row.package)
}
