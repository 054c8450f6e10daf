import { sql, type RawBuilder, type SqlBool } from 'kysely'
import { RECALLED } from '../../../policy/item-status.ts'
import type { ItemStatus } from '../../../policy/vocabulary.ts'
import { UNIT_FIELDS } from '../../shop/catalogue/render.ts'
import { type Db, groupBy } from '../../platform/persistence/database.ts'
import { prepared, preparedRows } from '../../platform/persistence/prepared.ts'
import type { ProductRecallRow, ProtectedItemRow } from '../../platform/persistence/tables/protection.ts'
import type { PurchaseLineRow } from '../../platform/persistence/tables/purchases.ts'

/**
 * A recall stops all goods that match it: those of its product, in its stores, with the lot, expiry and serial that it
 * names. It is a fact of its own beside the status of an item, so its end restores what the item is (ADR releases).
 */

export type Recall = Pick<ProductRecallRow, 'store_ids' | 'product_id' | 'lot' | 'expiry' | 'serial'>

/** Goods as a recall sees them. An unknown lot, expiry or serial matches no recall that names it. */
export interface RecallableGoods {
  storeId: string
  item?: RecallableItem | undefined
  /** Line that the item, or a unit without an item, is sold in. */
  line?: Partial<SoldLine> | undefined
}
type RecallableItem = Pick<ProtectedItemRow, 'product_id' | 'lot' | 'expiry' | 'serial'>
type SoldLine = Pick<PurchaseLineRow, 'product_id' | 'lot' | 'expiry' | 'serial'>

/** True if one of the recalls stops the goods. What an item does not state, its line may. */
export function isRecalled(recalls: readonly Recall[], { storeId, item, line }: RecallableGoods): boolean {
  const productId = item?.product_id ?? line?.product_id
  return recalls.some(
    (recall) =>
      recall.product_id === productId &&
      isInStore(recall, storeId) &&
      UNIT_FIELDS.every((field) => recall[field] === null || recall[field] === (item?.[field] ?? line?.[field])),
  )
}

/** True if the recall applies in this store. */
export function isInStore(recall: Pick<ProductRecallRow, 'store_ids'>, storeId: string): boolean {
  return storesOfRecall(recall)?.includes(storeId) ?? true
}

/** True if the recall names only the product: then it stops goods whatever is known about them. */
export function stopsWholeProduct(recall: Recall): boolean {
  return UNIT_FIELDS.every((field) => recall[field] === null)
}

const soldLine = prepared((db, p: { lineId: string }) =>
  db.selectFrom('purchase_line').select(['product_id', 'lot', 'expiry', 'serial']).where('line_id', '=', p.lineId),
)

/** An item with the line that it is sold in. */
export async function goodsOf(db: Db, item: ProtectedItemRow): Promise<RecallableGoods> {
  const [line] = item.line_id === null ? [] : await soldLine(db, { lineId: item.line_id })
  return { storeId: item.store_id, item, line }
}

/** Stores of a recall; null: all stores of the account, also later ones. */
export function storesOfRecall({ store_ids }: Pick<ProductRecallRow, 'store_ids'>): readonly string[] | null {
  return store_ids === null ? null : (JSON.parse(store_ids) as string[])
}

const ofProduct = prepared((db, p: { tenant: string; productId: string; atMs: number }) =>
  db
    .selectFrom('product_recall')
    .selectAll()
    .where('tenant', '=', p.tenant)
    .where('product_id', '=', p.productId)
    .where('started_ms', '<=', p.atMs)
    .where((eb) => eb.or([eb('ended_ms', 'is', null), eb('ended_ms', '>', p.atMs)])),
)

/** Later than any recall starts: the recalls of now, whatever clock they started by. */
const NOW = Number.MAX_SAFE_INTEGER

/** Recalls of a product that are active now, or were active at `pastMs`. */
export function recallsOf(
  db: Db,
  tenant: string,
  productId: string | null | undefined,
  pastMs?: number,
): Promise<ProductRecallRow[]> {
  return productId ? ofProduct(db, { tenant, productId, atMs: pastMs ?? NOW }) : Promise.resolve([])
}

/** Active recalls of an account. */
export const activeRecalls = preparedRows((db, tenant: string) =>
  db.selectFrom('product_recall').selectAll().where('tenant', '=', tenant).where('ended_ms', 'is', null),
)

/** Recalls of an account, also ended ones. */
export const allRecalls = preparedRows((db, tenant: string) =>
  db.selectFrom('product_recall').selectAll().where('tenant', '=', tenant),
)

/**
 * Reads the recalls of an account that are active now, or were active at `pastMs`. Returns a function that returns those
 * of a product.
 */
export async function recallsByProduct(
  db: Db,
  tenant: string,
  pastMs?: number,
): Promise<(productId: string | null | undefined) => readonly ProductRecallRow[]> {
  const wasActive = (row: ProductRecallRow, atMs: number) =>
    row.started_ms <= atMs && (row.ended_ms === null || row.ended_ms > atMs)
  const recalls =
    pastMs === undefined
      ? await activeRecalls(db, tenant)
      : (await allRecalls(db, tenant)).filter((row) => wasActive(row, pastMs))
  const byProduct = groupBy(recalls, (row) => row.product_id)
  return (productId) => byProduct.get(productId ?? '') ?? []
}

/** Facts for `decide` that replace the status of recalled goods; empty for other goods. */
export async function recallFacts(
  db: Db,
  tenant: string,
  goods: RecallableGoods,
  pastMs: number | undefined,
): Promise<Partial<typeof RECALLED>> {
  const recalls = await recallsOf(db, tenant, goods.item?.product_id ?? goods.line?.product_id, pastMs)
  return isRecalled(recalls, goods) ? RECALLED : {}
}

/** SQL condition: rows of this table are in a store of the recall. */
export function inStoresOf(
  table: 'i' | 'p',
  recall: Pick<ProductRecallRow, 'tenant' | 'store_ids'>,
): RawBuilder<SqlBool> {
  const store = sql.ref(`${table}.store_id`)
  const stores = storesOfRecall(recall)
  return stores === null
    ? sql<SqlBool>`${store} IN (SELECT store_id FROM store WHERE tenant = ${recall.tenant})`
    : sql<SqlBool>`${store} IN (${sql.join(stores)})`
}

/** The registered items that a recall stops, joined with the lines that they were sold in. */
export function recalledItems(db: Db, recall: Recall & Pick<ProductRecallRow, 'tenant'>) {
  const items = db
    .selectFrom('protected_item as i')
    .leftJoin('purchase_line as l', 'l.line_id', 'i.line_id')
    .where(inStoresOf('i', recall))
    .where('i.product_id', '=', recall.product_id)
  return UNIT_FIELDS.reduce((query, field) => {
    const value = recall[field]
    return value === null ? query : query.where((eb) => eb(eb.fn.coalesce(`i.${field}`, `l.${field}`), '=', value))
  }, items)
}

const SOLD: ReadonlySet<string> = new Set<ItemStatus>(['paid', 'picked_up'])

/** Some items of a recall's product, in the order of their ids. */
interface RecallWindow {
  /** Items that the recall stops. */
  readonly items: readonly { readonly item_id: string; readonly store_id: string }[]
  /** Number of these items that are paid or picked up. */
  readonly sold: number
  /** Id of the last item that was looked at; null if none is left. */
  readonly last: string | null
}

/**
 * Looks at the next `limit` items of a recall's product after this id. The limit counts the items that do not match,
 * too: so each look costs the same, however few the recall stops.
 */
export async function readWindow(db: Db, recall: Recall, after: string, limit: number): Promise<RecallWindow> {
  const rows = await db
    .selectFrom('protected_item as i')
    .leftJoin('purchase_line as l', 'l.line_id', 'i.line_id')
    .select(['i.item_id', 'i.store_id', 'i.item_status', 'i.product_id', 'i.lot', 'i.expiry', 'i.serial'])
    .select(['l.lot as line_lot', 'l.expiry as line_expiry', 'l.serial as line_serial'])
    .where('i.product_id', '=', recall.product_id)
    .where('i.item_id', '>', after)
    .orderBy('i.item_id')
    .limit(limit)
    .execute()
  const items = rows.filter((item) =>
    isRecalled([recall], {
      storeId: item.store_id,
      item,
      line: { lot: item.line_lot, expiry: item.line_expiry, serial: item.line_serial },
    }),
  )
  return {
    items,
    sold: items.filter((item) => SOLD.has(item.item_status)).length,
    last: rows.length < limit ? null : (rows.at(-1)?.item_id ?? null),
  }
}

/** Finds a recall of an account. */
export function findRecall(db: Db, tenant: string, recallId: string): Promise<ProductRecallRow | undefined> {
  return db
    .selectFrom('product_recall')
    .selectAll()
    .where('recall_id', '=', recallId)
    .where('tenant', '=', tenant)
    .executeTakeFirst()
}

interface RecallFilter {
  /** Only recalls that concern one of these stores; null: all. */
  stores: readonly string[] | null
  state?: 'active' | 'ended' | undefined
  /** Id of the last recall of the previous page. */
  after?: string | undefined
  limit: number
}

/** Recalls of an account, newest first. */
export function listRecalls(
  db: Db,
  tenant: string,
  { stores, state, after, limit }: RecallFilter,
): Promise<ProductRecallRow[]> {
  let query = db.selectFrom('product_recall').selectAll().where('tenant', '=', tenant)
  if (stores)
    query = query.where((eb) =>
      eb.or([
        eb('store_ids', 'is', null),
        // The column is a JSON array of ids, so a quoted id matches a whole element.
        ...stores.map((id) => sql<SqlBool>`store_ids LIKE ${`%"${id.replaceAll(/[%_!]/g, '!$&')}"%`} ESCAPE '!'`),
      ]),
    )
  if (state !== undefined) query = query.where('ended_ms', state === 'active' ? 'is' : 'is not', null)
  if (after !== undefined) query = query.where('recall_id', '<', after)
  return query.orderBy('recall_id', 'desc').limit(limit).execute()
}

/** Name of the product of a recall. */
export async function nameOfProduct(db: Db, { product_id }: Pick<ProductRecallRow, 'product_id'>): Promise<string> {
  const product = await db.selectFrom('product').select('name').where('product_id', '=', product_id).executeTakeFirst()
  return product?.name ?? ''
}
