import { sql, type SqlBool } from 'kysely'
import { RECALLED } from '../../../policy/item-status.ts'
import type { ItemStatus } from '../../../policy/vocabulary.ts'
import { UNIT_FIELDS } from '../../shop/catalogue/render.ts'
import { type Db, groupBy } from '../../platform/persistence/database.ts'
import { prepared, preparedRows, preparedForMany } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'

/**
 * A recall stops all goods that match it: those of its product, in its stores, with the lot, expiry and serial that it
 * names. It is a fact of its own beside the status of an item, so its end restores what the item is (ADR releases).
 */

export type Recall = Pick<Row<'product_recall'>, 'store_ids' | 'ean' | 'lot' | 'expiry' | 'serial'>

/** Goods as a recall sees them. An unknown lot, expiry or serial matches no recall that names it. */
export interface RecallableGoods {
  storeId: string
  item?: RecallableItem | undefined
  /** Line that the item, or a unit without an item, is sold in. */
  line?: Partial<SoldLine> | undefined
}
type RecallableItem = Pick<Row<'protected_item'>, 'ean' | 'lot' | 'expiry' | 'serial'>
type SoldLine = Pick<Row<'purchase_line'>, 'ean' | 'lot' | 'expiry' | 'serial'>

/** EAN of goods: of the item's product, else of its line. An SGTIN has it although the catalogue lacks the product. */
export function eanOf({ item, line }: Pick<RecallableGoods, 'item' | 'line'>): string | null | undefined {
  return item?.ean ?? line?.ean
}

/**
 * True if one of the recalls stops the goods. What an item does not state, its line may. Compares the stores last,
 * because an account may have many recalls that each name many stores.
 */
export function isRecalled(recalls: readonly Recall[], goods: RecallableGoods): boolean {
  const { storeId, item, line } = goods
  const ean = eanOf(goods)
  return recalls.some(
    (recall) =>
      recall.ean === ean &&
      UNIT_FIELDS.every((field) => recall[field] === null || recall[field] === (item?.[field] ?? line?.[field])) &&
      isInStore(recall, storeId),
  )
}

/** Stores by row of a recall, because one call compares a recall with thousands of units. */
const storesByRow = new WeakMap<object, ReadonlySet<string>>()

/** True if the recall applies in this store. */
export function isInStore(recall: Pick<Row<'product_recall'>, 'store_ids'>, storeId: string): boolean {
  if (recall.store_ids === null) return true
  const stores = storesByRow.get(recall) ?? new Set(storesOfRecall(recall))
  storesByRow.set(recall, stores)
  return stores.has(storeId)
}

/** True if the recall names only the product: then it stops goods whatever is known about them. */
export function stopsWholeProduct(recall: Recall): boolean {
  return UNIT_FIELDS.every((field) => recall[field] === null)
}

const soldLine = prepared((db, p: { lineId: string }) =>
  db.selectFrom('purchase_line').select(['ean', 'lot', 'expiry', 'serial']).where('line_id', '=', p.lineId),
)

/** An item with the line that it is sold in. */
export async function goodsOf(db: Db, item: Row<'protected_item'>): Promise<RecallableGoods> {
  const [line] = item.line_id === null ? [] : await soldLine(db, { lineId: item.line_id })
  return { storeId: item.store_id, item, line }
}

const linesByIds = preparedForMany((db, lineIds) =>
  db.selectFrom('purchase_line').select(['line_id', 'lot', 'expiry', 'serial']).where('line_id', 'in', lineIds),
)

/** What the lines of purchases state about their goods, by line. */
export async function soldLines(
  db: Db,
  lineIds: readonly string[],
): Promise<ReadonlyMap<string, Pick<Row<'purchase_line'>, 'lot' | 'expiry' | 'serial'>>> {
  return new Map((await linesByIds(db, lineIds)).map((line) => [line.line_id, line]))
}

/** Stores of a recall; null: all stores of the account, also later ones. */
export function storesOfRecall({ store_ids }: Pick<Row<'product_recall'>, 'store_ids'>): readonly string[] | null {
  return store_ids === null ? null : (JSON.parse(store_ids) as string[])
}

const ofEan = prepared((db, p: { tenant: string; ean: string; atMs: number }) =>
  db
    .selectFrom('product_recall')
    .selectAll()
    .where('tenant', '=', p.tenant)
    .where('ean', '=', p.ean)
    .where('started_ms', '<=', p.atMs)
    .where((eb) => eb.or([eb('ended_ms', 'is', null), eb('ended_ms', '>', p.atMs)])),
)

/** Later than any recall starts: the recalls of now, whatever clock they started by. */
const NOW = Number.MAX_SAFE_INTEGER

/** Reads the recalls of an EAN. */
export type RecallReader = (ean: string | null | undefined) => Promise<readonly Row<'product_recall'>[]>

/**
 * Reads recalls that are active now, or were active at `pastMs`, each EAN once. Use one reader for all rows of a call:
 * a product may have 500 recalls of 1,000 stores.
 */
export function recallReader(db: Db, tenant: string, pastMs?: number): RecallReader {
  const known = new Map<string, Promise<readonly Row<'product_recall'>[]>>()
  return (ean) => {
    if (!ean) return Promise.resolve([])
    const recalls = known.get(ean) ?? ofEan(db, { tenant, ean, atMs: pastMs ?? NOW })
    known.set(ean, recalls)
    return recalls
  }
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
 * of an EAN.
 */
export async function recallsByEan(
  db: Db,
  tenant: string,
  pastMs?: number,
): Promise<(ean: string | null | undefined) => readonly Row<'product_recall'>[]> {
  const wasActive = (row: Row<'product_recall'>, atMs: number) =>
    row.started_ms <= atMs && (row.ended_ms === null || row.ended_ms > atMs)
  const recalls =
    pastMs === undefined
      ? await activeRecalls(db, tenant)
      : (await allRecalls(db, tenant)).filter((row) => wasActive(row, pastMs))
  const byEan = groupBy(recalls, (row) => row.ean)
  return (ean) => byEan.get(ean ?? '') ?? []
}

/** Facts for `decide` that replace the status of recalled goods; empty for other goods. */
export async function recallFacts(
  db: Db,
  tenant: string,
  goods: RecallableGoods,
  pastMs: number | undefined,
): Promise<Partial<typeof RECALLED>> {
  const recalls = await recallReader(db, tenant, pastMs)(eanOf(goods))
  return isRecalled(recalls, goods) ? RECALLED : {}
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
 * Looks at the next items of a recall's product after this id. The limit counts the items that do not match, too: so
 * each look costs the same, however few the recall stops. It ends early if the items are in too many stores.
 */
export async function readWindow(
  db: Db,
  recall: Recall & Pick<Row<'product_recall'>, 'tenant'>,
  after: string,
  limit: { items: number; stores: number },
): Promise<RecallWindow> {
  const found = await db
    .selectFrom('protected_item as i')
    .leftJoin('purchase_line as l', 'l.line_id', 'i.line_id')
    .select(['i.item_id', 'i.store_id', 'i.item_status', 'i.ean', 'i.lot', 'i.expiry', 'i.serial'])
    .select(['l.lot as line_lot', 'l.expiry as line_expiry', 'l.serial as line_serial'])
    .where('i.tenant', '=', recall.tenant)
    .where('i.ean', '=', recall.ean)
    .where('i.item_id', '>', after)
    .orderBy('i.item_id')
    .limit(limit.items)
    .execute()
  const stores = new Set<string>()
  const tooMany = found.findIndex(({ store_id: storeId }) => stores.add(storeId).size > limit.stores)
  const rows = tooMany < 0 ? found : found.slice(0, tooMany)
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
    last: found.length < limit.items && tooMany < 0 ? null : (rows.at(-1)?.item_id ?? null),
  }
}

/** Finds a recall of an account. */
export function findRecall(db: Db, tenant: string, recallId: string): Promise<Row<'product_recall'> | undefined> {
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
): Promise<Row<'product_recall'>[]> {
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
export async function nameOfProduct(
  db: Db,
  { product_id }: Pick<Row<'product_recall'>, 'product_id'>,
): Promise<string> {
  const product = await db.selectFrom('product').select('name').where('product_id', '=', product_id).executeTakeFirst()
  return product?.name ?? ''
}
