import { RECALLED } from '../../../policy/item-status.ts'
import type { ItemStatus } from '../../../policy/vocabulary.ts'
import { UNIT_FIELDS } from '../../shop/catalogue/render.ts'
import { type Db, groupBy } from '../../platform/persistence/database.ts'
import { prepared, preparedForMany } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'

/**
 * A recall stops all goods that match it: those of its product, in its stores, with the lot, expiry and serial that it
 * names. It is a fact of its own beside the status of an item, so its end restores what the item is (ADR releases).
 */

export type Recall = Pick<Row<'product_recall'>, 'ean' | 'lot' | 'expiry' | 'serial'>

/** Goods as a recall sees them. An unknown lot, expiry or serial matches no recall that names it. */
export interface RecallableGoods {
  item?: RecallableItem | undefined
  /** Line that the item, or a unit without an item, is sold in. */
  line?: Partial<SoldLine> | undefined
}
type RecallableItem = Pick<Row<'protected_item'>, 'ean' | 'lot' | 'expiry' | 'serial'>
type SoldLine = Pick<Row<'purchase_line'>, 'ean' | 'lot' | 'expiry' | 'serial'>

/** EAN of goods: of the item's product, else of its line. An SGTIN has it although the catalogue lacks the product. */
function eanOf({ item, line }: RecallableGoods): string | null | undefined {
  return item?.ean ?? line?.ean
}

/** True if the recall names these goods. What an item does not state, its line may. The caller compares the store. */
export function namesGoods(recall: Recall, goods: RecallableGoods): boolean {
  const { item, line } = goods
  return (
    recall.ean === eanOf(goods) &&
    UNIT_FIELDS.every((field) => recall[field] === null || recall[field] === (item?.[field] ?? line?.[field]))
  )
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
  return { item, line }
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

/** The recalls of a store: of the whole account, or of this store. */
export class StoreRecalls {
  readonly #byEan: ReadonlyMap<string, readonly Recall[]>

  constructor(recalls: readonly Recall[]) {
    this.#byEan = groupBy(recalls, (row) => row.ean)
  }

  /** All of them. */
  get all(): readonly Recall[] {
    return [...this.#byEan.values()].flat()
  }

  /** Those of an EAN. */
  ofEan(ean: string | null | undefined): readonly Recall[] {
    return this.#byEan.get(ean ?? '') ?? []
  }

  /** Those that stop these goods. */
  of(goods: RecallableGoods): readonly Recall[] {
    return this.ofEan(eanOf(goods)).filter((recall) => namesGoods(recall, goods))
  }

  /** True if one of them stops the goods. */
  stop(goods: RecallableGoods): boolean {
    return this.ofEan(eanOf(goods)).some((recall) => namesGoods(recall, goods))
  }

  /** Facts for `decide` that replace the status of recalled goods; empty for other goods. */
  factsOf(goods: RecallableGoods): Partial<typeof RECALLED> {
    return this.stop(goods) ? RECALLED : {}
  }
}

interface RecallQuery {
  tenant: string
  storeId: string
  atMs: number
}

function recallsOfStore(db: Db, { tenant, storeId }: RecallQuery) {
  return db
    .selectFrom('product_recall as r')
    .select(['ean', 'lot', 'expiry', 'serial'])
    .where('tenant', '=', tenant)
    .where((eb) =>
      eb.or([
        eb('stores', 'is', null),
        eb.exists(
          eb
            .selectFrom('recall_store as s')
            .select('s.store_id')
            .whereRef('s.recall_id', '=', 'r.recall_id')
            .where('s.store_id', '=', storeId),
        ),
      ]),
    )
}
const activeNow = prepared((db, p: RecallQuery) => recallsOfStore(db, p).where('ended_ms', 'is', null))
const activeThen = prepared((db, p: RecallQuery) =>
  recallsOfStore(db, p)
    .where((eb) => eb.or([eb('ended_ms', 'is', null), eb('ended_ms', '>', p.atMs)]))
    .where('started_ms', '<=', p.atMs),
)

/** Reads the recalls of a store that are active now, or were active at `pastMs`. Read them once for all goods of a call. */
export async function recallsIn(
  db: Db,
  { tenant, store_id: storeId }: Pick<Row<'store'>, 'tenant' | 'store_id'>,
  pastMs?: number,
): Promise<StoreRecalls> {
  const query = { tenant, storeId, atMs: pastMs ?? 0 }
  return new StoreRecalls(await (pastMs === undefined ? activeNow(db, query) : activeThen(db, query)))
}

const anyOfTenant = prepared((db, p: { tenant: string }) =>
  db.selectFrom('product_recall').select('recall_id').where('tenant', '=', p.tenant).limit(1),
)

/** True if the account ever had a recall. */
export async function hasRecalls(db: Db, tenant: string): Promise<boolean> {
  return (await anyOfTenant(db, { tenant })).length > 0
}

/** Number of active recalls of an account. */
export async function countActive(db: Db, tenant: string): Promise<number> {
  const { count } = await db
    .selectFrom('product_recall')
    .select((eb) => eb.fn.countAll().as('count'))
    .where('tenant', '=', tenant)
    .where('ended_ms', 'is', null)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Stores of a recall; null: all stores of the account, also later ones. */
export async function storesOfRecall(
  db: Db,
  { recall_id, stores }: Pick<Row<'product_recall'>, 'recall_id' | 'stores'>,
): Promise<ReadonlySet<string> | null> {
  if (stores === null) return null
  const rows = await db.selectFrom('recall_store').select('store_id').where('recall_id', '=', recall_id).execute()
  return new Set(rows.map((row) => row.store_id))
}

/** True if the recall applies in this store. */
export async function isInStore(
  db: Db,
  { recall_id, stores }: Pick<Row<'product_recall'>, 'recall_id' | 'stores'>,
  storeId: string,
): Promise<boolean> {
  if (stores === null) return true
  const rows = await db
    .selectFrom('recall_store')
    .select('store_id')
    .where('recall_id', '=', recall_id)
    .where('store_id', '=', storeId)
    .execute()
  return rows.length > 0
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
  recall: Recall & Pick<Row<'product_recall'>, 'tenant' | 'recall_id' | 'stores'>,
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
  const inStores = await storesOfRecall(db, recall)
  const items = rows.filter(
    (item) =>
      (inStores?.has(item.store_id) ?? true) &&
      namesGoods(recall, {
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
        eb('stores', 'is', null),
        eb.exists(
          eb
            .selectFrom('recall_store as s')
            .select('s.store_id')
            .whereRef('s.recall_id', '=', 'product_recall.recall_id')
            .where('s.store_id', 'in', stores.length === 0 ? ['-'] : stores),
        ),
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
