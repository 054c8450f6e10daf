import type { Db } from '../persistence/database.ts'
import { preparedRow } from '../persistence/prepared.ts'
import type { Row } from '../persistence/schema.ts'

/** Finds a store of any tenant. */
export const findStore = preparedRow((db, storeId: string) =>
  db.selectFrom('store').selectAll().where('store_id', '=', storeId),
)

/** Stores of a tenant sorted by id, which is the order of creation. */
export function listStores(db: Db, tenant: string, limit: number): Promise<Row<'store'>[]> {
  return db.selectFrom('store').selectAll().where('tenant', '=', tenant).orderBy('store_id').limit(limit).execute()
}

/**
 * Increases the version of the store's signed policy document. Call this function after each change of policy, devices
 * or operators.
 */
export async function raiseDocumentVersion(db: Db, storeId: string): Promise<void> {
  await db
    .updateTable('store')
    .set((eb) => ({ document_version: eb('document_version', '+', 1) }))
    .where('store_id', '=', storeId)
    .execute()
}

/** Increases it for these stores of an account; null: for all. Returns the ids of the stores. */
export async function raiseDocumentVersions(
  db: Db,
  tenant: string,
  storeIds: readonly string[] | null,
): Promise<string[]> {
  let update = db
    .updateTable('store')
    .set((eb) => ({ document_version: eb('document_version', '+', 1) }))
    .where('tenant', '=', tenant)
  if (storeIds) update = update.where('store_id', 'in', storeIds)
  return (await update.returning('store_id').execute()).map((row) => row.store_id)
}

/** Number of stores of a tenant. */
export async function countStores(db: Db, tenant: string): Promise<number> {
  const { count } = await db
    .selectFrom('store')
    .select((eb) => eb.fn.countAll().as('count'))
    .where('tenant', '=', tenant)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Inserts a store. */
export async function insertStoreRow(db: Db, row: Row<'store'>): Promise<void> {
  await db.insertInto('store').values(row).execute()
}

/** Updates columns of a store. */
export async function updateStoreRow(db: Db, storeId: string, set: Partial<Row<'store'>>): Promise<void> {
  await db.updateTable('store').set(set).where('store_id', '=', storeId).execute()
}

/** Distinct packages of a tenant's stores. */
export async function packagesOf(db: Db, tenant: string): Promise<string[]> {
  const rows = await db.selectFrom('store').select('package').distinct().where('tenant', '=', tenant).execute()
  return rows.map((row) => row.package)
}

/** Number of receipts that each of these stores has issued. Stores without receipts are missing. */
export async function countReceipts(db: Db, storeIds: readonly string[]): Promise<Map<string, number>> {
  if (storeIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('store_day')
    .select((eb) => ['store_id', eb.fn.sum<number>('receipts').as('receipts')] as const)
    .where('store_id', 'in', storeIds)
    .groupBy('store_id')
    .execute()
  return new Map(rows.map((row) => [row.store_id, row.receipts]))
}
