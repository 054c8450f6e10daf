import { sql } from 'kysely'
import { assert } from '../../../policy/assert.ts'
import type { Call, Services } from '../../platform/operations/operation.ts'
import { type Database, type Db, groupBy } from '../../platform/persistence/database.ts'
import { prepared, preparedForMany } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { inTurns } from '../../platform/operations/job-steps.ts'
import { DELETED_AT_ONCE } from '../../platform/persistence/delete-some.ts'

/**
 * Sequence numbers of item changes (policy/documents/item-documents.ts). A transaction that takes a number locks the
 * store's head until its commit. So numbers become visible in order and without gaps.
 */

interface ItemHead {
  /** Newest number. */
  seq: number
  /**
   * Highest number of a removed identifier whose row was deleted after the retention. An agent with an older version
   * loads all items again.
   */
  floor: number
}

/** Retention of removed identifiers, ms. An agent that was offline longer loads all items again. */
const REMOVED_RETENTION_MS = 30 * 86_400_000

/** Takes the next `count` numbers of a store's sequence. Returns the first of them. */
export async function nextItemSeq(db: Db, storeId: string, count = 1): Promise<number> {
  const [head] = await raiseHead(db, { storeId, count })
  assert(head, 'an item head that was raised is there')
  return head.seq - count + 1
}

const raiseHead = prepared((db, p: { storeId: string; count: number }) =>
  db
    .insertInto('item_head')
    .values({ store_id: p.storeId, seq: p.count, floor: 0 })
    .onConflict((c) => c.column('store_id').doUpdateSet((eb) => ({ seq: eb('item_head.seq', '+', p.count) })))
    .returning('seq'),
)

const headOfStore = prepared((db, p: { storeId: string }) =>
  db.selectFrom('item_head').select(['seq', 'floor']).where('store_id', '=', p.storeId),
)

/** Current head of a store's sequence. */
export async function itemHead(db: Db, storeId: string): Promise<ItemHead> {
  const [row] = await headOfStore(db, { storeId })
  return row ?? { seq: 0, floor: 0 }
}

const NAMES = ['epc', 'tag_uid', 'tag_id'] as const

/**
 * Reserves the next number in the store's item sequence for a change of an item. If the change removes identifiers of
 * the item, the removals get the numbers just before the number of the change.
 */
export async function nextChangeSeq(
  db: Db,
  item: Row<'protected_item'>,
  change: Partial<Row<'protected_item'>>,
  nowMs: number,
): Promise<number> {
  const removed = namesOf(item).filter(({ kind, name }) => change[kind] !== undefined && change[kind] !== name)
  const first = await nextItemSeq(db, item.store_id, removed.length + 1)
  await storeRemovedNames(db, item.store_id, removed, first, nowMs)
  return first + removed.length
}

/** Publishes the removal of all identifiers of an item that leaves its store. */
export async function removeItemNames(db: Db, item: Row<'protected_item'>, nowMs: number): Promise<void> {
  const names = namesOf(item)
  await storeRemovedNames(db, item.store_id, names, await nextItemSeq(db, item.store_id, names.length), nowMs)
}

interface NameOfItem {
  kind: (typeof NAMES)[number]
  name: string
}

function namesOf(item: Row<'protected_item'>): NameOfItem[] {
  return NAMES.flatMap((kind) => (item[kind] === null ? [] : [{ kind, name: item[kind] }]))
}

async function storeRemovedNames(
  db: Db,
  storeId: string,
  names: readonly NameOfItem[],
  first: number,
  nowMs: number,
): Promise<void> {
  for (const [i, { kind, name }] of names.entries()) {
    const row = { store_id: storeId, kind, name, seq: first + i, gone_ms: nowMs }
    await db
      .insertInto('item_gone')
      .values(row)
      .onConflict((c) => c.columns(['store_id', 'kind', 'name']).doUpdateSet({ seq: row.seq, gone_ms: nowMs }))
      .execute()
  }
}

/** Gives items new numbers after a change of data that gates receive. */
export async function renumberItems(db: Db, storeId: string, itemIds: readonly string[]): Promise<void> {
  if (itemIds.length === 0) return
  let first = await nextItemSeq(db, storeId, itemIds.length)
  for (let at = 0; at < itemIds.length; at += AT_ONCE) {
    const part = itemIds.slice(at, at + AT_ONCE)
    await renumber(db, part, { first, storeId })
    first += part.length
  }
}

/** Items that one statement renumbers; the same number as in `preparedForMany`. */
const AT_ONCE = 100

const renumber = preparedForMany((db, itemIds, p: { first: number; storeId: string }) =>
  db
    .updateTable('protected_item')
    .from((from) =>
      from
        .selectFrom('protected_item as i')
        .select((eb) => [
          'i.item_id',
          eb(
            eb.fn.agg<number>('row_number').over((over) => over.orderBy('i.item_id')),
            '-',
            1,
          ).as('place'),
        ])
        .where('i.item_id', 'in', itemIds)
        .as('numbered'),
    )
    .set((eb) => ({ item_seq: eb('numbered.place', '+', p.first) }))
    .whereRef('protected_item.item_id', '=', 'numbered.item_id')
    // Skips an item that was moved to another store, because the other store numbers the item now. As an expression: by
    // the column, SQLite would read all items of the store.
    .where(sql`protected_item.store_id || ''`, '=', p.storeId),
)

const itemsIn = prepared((db, p: { purchaseId: string }) =>
  db
    .selectFrom('purchase_unit')
    .select('item_id')
    .distinct()
    .where('purchase_id', '=', p.purchaseId)
    .where('item_id', 'is not', null),
)

/**
 * Gives new numbers to the items of a checkout that began or ended, so that gates receive the items again. If an item
 * is in an unpaid checkout, a gate sends a request to the cloud before it alarms. Returns whether the checkout has
 * items.
 */
export async function renumberItemsOf(db: Db, purchase: { purchase_id: string; store_id: string }): Promise<boolean> {
  const units = await itemsIn(db, { purchaseId: purchase.purchase_id })
  const itemIds = units.flatMap((unit) => unit.item_id ?? []).sort()
  await renumberItems(db, purchase.store_id, itemIds)
  return itemIds.length > 0
}

/** Notifies the store's gates after the commit and before the response. */
export function notifyGates(
  call: { services: Pick<Services, 'agents'>; afterCommit: Call['afterCommit'] },
  storeId: string,
): void {
  call.afterCommit(() => call.services.agents.itemsChanged(storeId))
}

/**
 * Deletes the oldest rows of removed identifiers after their retention, and raises `floor` to the newest deleted number.
 * Returns the number of deleted rows.
 */
export async function pruneRemovedNames(db: Db, nowMs: number): Promise<number> {
  const old = await db
    .selectFrom('item_gone')
    .select(['store_id', 'kind', 'name', 'seq'])
    .where('gone_ms', '<', nowMs - REMOVED_RETENTION_MS)
    .orderBy('gone_ms')
    .limit(DELETED_AT_ONCE)
    .execute()
  for (const { store_id: storeId, kind, name } of old)
    await db
      .deleteFrom('item_gone')
      .where('store_id', '=', storeId)
      .where('kind', '=', kind)
      .where('name', '=', name)
      .execute()
  for (const [storeId, ofStore] of groupBy(old, (row) => row.store_id)) {
    const floor = Math.max(...ofStore.map(({ seq }) => seq))
    await db
      .updateTable('item_head')
      .set({ floor })
      .where('store_id', '=', storeId)
      .where('floor', '<', floor)
      .execute()
  }
  return old.length
}

/** Items and products per transaction: few, because each transaction locks the store's head. */
const ITEMS_AT_ONCE = 100
const PRODUCTS_AT_ONCE = 20
/** Accounts per read. Further accounts follow in the next run. */
const ACCOUNTS = 1_000

/**
 * Publishes the items of changed products again, so that agents decide with the same price, category and brand as the
 * cloud, and show the new name and picture.
 */
export function refreshItems(
  database: Database,
  services: Pick<Services, 'log' | 'platform' | 'agents'>,
): Promise<boolean> {
  return inTurns(database, services, {
    job: 'items of changed products',
    accounts: readAccounts,
    async turn(holder) {
      const storeId = await database.write((db) => refreshSome(db, holder), { holder })
      if (storeId !== undefined) void services.agents.itemsChanged(storeId)
      return storeId
    },
  })
}

/** The accounts with changed products, the longest waiting first. */
async function readAccounts(db: Db): Promise<string[]> {
  const rows = await db
    .selectFrom('item_refresh')
    .select('tenant')
    .groupBy('tenant')
    .orderBy((eb) => eb.fn.min('queued_ms'))
    .orderBy('tenant')
    .limit(ACCOUNTS)
    .execute()
  return rows.map(({ tenant }) => tenant)
}

/**
 * Publishes the next items of the account's first changed products in one store. Returns the store; undefined if no
 * product is left.
 */
async function refreshSome(db: Db, tenant: string): Promise<string | undefined> {
  const rows = await db
    .selectFrom('item_refresh')
    .select(['store_id', 'product_id'])
    .where('tenant', '=', tenant)
    .orderBy('queued_ms')
    .orderBy('store_id')
    .orderBy('product_id')
    .limit(PRODUCTS_AT_ONCE)
    .execute()
  const storeId = rows[0]?.store_id
  let room = ITEMS_AT_ONCE
  for (const row of rows) if (row.store_id === storeId && room > 0) room -= await refreshProduct(db, row, room)
  return storeId
}

/** Publishes at most `limit` items of a product, and returns their number. */
async function refreshProduct(
  db: Db,
  { store_id, product_id }: Pick<Row<'item_refresh'>, 'store_id' | 'product_id'>,
  limit: number,
): Promise<number> {
  // The update locks the row, so that two processes do not publish the same items.
  const row = await db
    .updateTable('item_refresh')
    .set((eb) => ({ after_item: eb.ref('after_item') }))
    .where('store_id', '=', store_id)
    .where('product_id', '=', product_id)
    .returning('after_item')
    .executeTakeFirst()
  if (!row) return 0
  const items = await db
    .selectFrom('protected_item')
    .select('item_id')
    .where('store_id', '=', store_id)
    .where('product_id', '=', product_id)
    .where('item_id', '>', row.after_item)
    .orderBy('item_id')
    .limit(limit)
    .execute()
  const ids = items.map(({ item_id }) => item_id)
  await renumberItems(db, store_id, ids)
  const found = { store_id, product_id }
  if (ids.length < limit)
    await db
      .deleteFrom('item_refresh')
      .where((eb) => eb.and(found))
      .execute()
  else
    await db
      .updateTable('item_refresh')
      .set({ after_item: ids.at(-1) ?? '' })
      .where((eb) => eb.and(found))
      .execute()
  return ids.length
}
