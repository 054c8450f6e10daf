import { changedRows, type Db } from '../../platform/persistence/database.ts'
import { prepared } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { knownCaller } from '../../platform/foundation/caller.ts'
import { Failure, invalid, notFound } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'

/** Maximum number of rows per INSERT. */
const AT_ONCE = 500

const groupOfOffer = prepared((db, p: { tenant: string; offerId: string }) =>
  db
    .selectFrom('offer')
    .innerJoin('offer_group', 'offer_group.group_id', 'offer.group_id')
    .selectAll('offer_group')
    .where('offer.offer_id', '=', p.offerId)
    .where('offer_group.tenant', '=', p.tenant),
)
const groupById = prepared((db, p: { tenant: string; groupId: string }) =>
  db.selectFrom('offer_group').selectAll().where('group_id', '=', p.groupId).where('tenant', '=', p.tenant),
)

/** Finds an offer of the tenant by its group id or the id of a branch document. */
export async function findGroup(db: Db, tenant: string, id: string): Promise<Row<'offer_group'> | undefined> {
  const [ofBranch] = await groupOfOffer(db, { tenant, offerId: id })
  if (ofBranch) return ofBranch
  const [group] = await groupById(db, { tenant, groupId: id })
  return group
}

/** All branch documents of an offer in order of creation, including removed ones. */
export function readBranches(db: Db, groupId: string): Promise<Row<'offer'>[]> {
  return db.selectFrom('offer').selectAll().where('group_id', '=', groupId).orderBy('branch_no').execute()
}

/** Active branches of these offers, of these stores or of all, and the sum of each counter over all branches. */
export async function readBranchesOf(db: Db, groupIds: readonly string[], storeIds: readonly string[] | null) {
  if (groupIds.length === 0) return { branches: [], counts: [] }
  let query = db
    .selectFrom('offer')
    .select(['group_id', 'store_id'])
    .where('group_id', 'in', groupIds)
    .where('is_active', '=', 1)
  if (storeIds !== null) query = query.where('store_id', 'in', storeIds)
  const branches = await query.orderBy('group_id').orderBy('branch_no').execute()
  const counts = await db
    .selectFrom('offer')
    .select([
      'group_id',
      (eb) => eb.fn.sum<number>('click_count').as('clicks'),
      (eb) => eb.fn.sum<number>('favorited_count').as('favorites'),
    ])
    .where('group_id', 'in', groupIds)
    .groupBy('group_id')
    .execute()
  return { branches, counts }
}

/** Active branches of these offers in branch order. Branches with the same prices share a `list_id`. */
export async function readPricedBranches(db: Db, groupIds: readonly string[], storeId?: string) {
  if (groupIds.length === 0) return []
  let query = db
    .selectFrom('offer')
    .select(['group_id', 'store_id', 'list_id'])
    .where('group_id', 'in', groupIds)
    .where('is_active', '=', 1)
  if (storeId !== undefined) query = query.where('store_id', '=', storeId)
  return query.orderBy('group_id').orderBy('branch_no').execute()
}

/** Product lists by id, as JSON. */
export async function readLists(db: Db, listIds: Iterable<string>): Promise<Map<string, string>> {
  const ids = [...new Set(listIds)]
  if (ids.length === 0) return new Map()
  const rows = await db.selectFrom('offer_list').select(['list_id', 'products']).where('list_id', 'in', ids).execute()
  return new Map(rows.map((row) => [row.list_id, row.products]))
}

/** Inserts a product list with its prices by EAN. */
export async function insertList(
  db: Db,
  row: Row<'offer_list'>,
  prices: readonly { ean: string; price_cent: number }[],
): Promise<void> {
  await db.insertInto('offer_list').values(row).execute()
  if (prices.length > 0)
    await db
      .insertInto('offer_price')
      .values(prices.map((price) => ({ list_id: row.list_id, ...price })))
      .execute()
}

/** Product list by id. */
export function readList(db: Db, listId: string): Promise<Row<'offer_list'>> {
  return db.selectFrom('offer_list').selectAll().where('list_id', '=', listId).executeTakeFirstOrThrow()
}

/** Deletes these lists, except lists that a branch still uses. */
export async function dropUnusedLists(db: Db, listIds: Iterable<string>): Promise<void> {
  for (const listId of new Set(listIds)) {
    const used = await db
      .selectFrom('offer')
      .select('offer_id')
      .where('list_id', '=', listId)
      .limit(1)
      .executeTakeFirst()
    if (used) continue
    await db.deleteFrom('offer_price').where('list_id', '=', listId).execute()
    await db.deleteFrom('offer_list').where('list_id', '=', listId).execute()
  }
}

/** Inserts branch documents. */
export async function insertBranches(db: Db, rows: readonly Row<'offer'>[]): Promise<void> {
  for (let i = 0; i < rows.length; i += AT_ONCE)
    await db
      .insertInto('offer')
      .values(rows.slice(i, i + AT_ONCE))
      .execute()
}

/** A store in which more than `most` offers have not ended; undefined if none of these has so many. */
export async function storeWithMoreOffers(
  db: Db,
  storeIds: readonly string[],
  most: number,
  nowMs: number,
): Promise<string | undefined> {
  const row = await db
    .selectFrom('offer')
    .select('store_id')
    .where('store_id', 'in', storeIds)
    .where('is_active', '=', 1)
    .where('valid_to_ms', '>', nowMs)
    .groupBy('store_id')
    .having((eb) => eb.fn.countAll(), '>', most)
    .orderBy('store_id')
    .limit(1)
    .executeTakeFirst()
  return row?.store_id
}

/** Updates all branch documents of a group, or only `offerIds`. */
export async function updateBranches(
  db: Db,
  groupId: string,
  change: Partial<Row<'offer'>>,
  offerIds?: readonly string[],
): Promise<void> {
  if (offerIds?.length === 0) return
  let query = db.updateTable('offer').set(change).where('group_id', '=', groupId)
  if (offerIds) query = query.where('offer_id', 'in', offerIds)
  await query.execute()
}

/** Deletes all branch documents of a group, or only `offerIds`. */
export async function deleteBranches(db: Db, groupId: string, offerIds?: readonly string[]): Promise<void> {
  let query = db.deleteFrom('offer').where('group_id', '=', groupId)
  if (offerIds) query = query.where('offer_id', 'in', offerIds)
  await query.execute()
}

/** Updates an offer if its status and revision are unchanged. Returns false otherwise. */
export async function updateGroup(
  db: Db,
  group: Pick<Row<'offer_group'>, 'group_id' | 'status' | 'rev'>,
  change: Partial<Row<'offer_group'>>,
): Promise<boolean> {
  const update = db
    .updateTable('offer_group')
    .set({ ...change, rev: group.rev + 1 })
    .where('group_id', '=', group.group_id)
    .where('status', '=', group.status)
    .where('rev', '=', group.rev)
  return (await changedRows(db, update)) === 1
}

/** Offers of an account that must change their status now, the longest due first. */
export function readDue(db: Db, tenant: string, nowMs: number, { limit, offset }: { limit: number; offset: number }) {
  return db
    .selectFrom('offer_group')
    .select(['group_id', 'tenant'])
    .where('tenant', '=', tenant)
    .where('due_ms', '<=', nowMs)
    .orderBy('due_ms')
    .orderBy('group_id')
    .limit(limit)
    .offset(offset)
    .execute()
}

/** When the next offer that is not due yet must change its status, ms since 1970. */
export async function nextDue(db: Db, nowMs: number): Promise<number | undefined> {
  const query = db.selectFrom('offer_group').select('due_ms').where('due_ms', '>', nowMs).orderBy('due_ms').limit(1)
  return (await query.executeTakeFirst())?.due_ms ?? undefined
}

/** For each EAN, the number of these stores that sell it. */
export function countSellers(db: Db, tenant: string, eans: readonly string[], storeIds: readonly string[]) {
  return db
    .selectFrom('product')
    .innerJoin('store_product', 'store_product.product_id', 'product.product_id')
    .select(['product.ean', 'product.name', (eb) => eb.fn.countAll<number>().as('stores')])
    .where('product.tenant', '=', tenant)
    .where('product.ean', 'in', eans)
    .where('store_product.store_id', 'in', storeIds)
    .groupBy(['product.ean', 'product.name'])
    .execute()
}

/** Returns the stores of `storeIds` that sell the EAN. */
export async function readSellers(
  db: Db,
  tenant: string,
  ean: string,
  storeIds: readonly string[],
): Promise<Set<string>> {
  const rows = await db
    .selectFrom('product')
    .innerJoin('store_product', 'store_product.product_id', 'product.product_id')
    .select('store_product.store_id')
    .where('product.tenant', '=', tenant)
    .where('product.ean', '=', ean)
    .where('store_product.store_id', 'in', storeIds)
    .execute()
  return new Set(rows.map((row) => row.store_id))
}

/** Highest discount of an offer in any of its active branches, whole percent. */
export async function mostDiscount(db: Db, groupId: string): Promise<number> {
  const row = await db
    .selectFrom('offer')
    .innerJoin('offer_list', 'offer_list.list_id', 'offer.list_id')
    .select((eb) => eb.fn.max('offer_list.discount_percent').as('most'))
    .where('offer.group_id', '=', groupId)
    .where('offer.is_active', '=', 1)
    .executeTakeFirst()
  return Number(row?.most ?? 0)
}

/** `only` filters by the status that is computed from the clock. */
interface GroupFilter {
  tenant: string
  storeIds: readonly string[] | null
  only: 'all' | 'scheduled' | 'active' | 'expired'
  /** The offer runs at some time from `fromMs` until before `endMs`. */
  fromMs?: number
  endMs?: number
  nowMs: number
}

function filteredGroups(db: Db, of: GroupFilter) {
  let query = db
    .selectFrom('offer_group')
    .where('tenant', '=', of.tenant)
    .where('valid_to_ms', '>', of.fromMs ?? 0)
    .where('valid_from_ms', '<', of.endMs ?? Number.MAX_SAFE_INTEGER)
  if (of.only === 'scheduled') query = query.where('valid_from_ms', '>', of.nowMs)
  if (of.only === 'active') query = query.where('valid_from_ms', '<=', of.nowMs).where('valid_to_ms', '>', of.nowMs)
  if (of.only === 'expired') query = query.where('valid_to_ms', '<=', of.nowMs)
  const { storeIds } = of
  if (storeIds !== null) {
    const groups = db
      .selectFrom('offer')
      .select('group_id')
      .where('is_active', '=', 1)
      .where('store_id', 'in', storeIds)
      // Offers that have ended may be many.
      .where('valid_to_ms', '>', of.only === 'active' ? of.nowMs : (of.fromMs ?? 0))
    query = query.where('group_id', 'in', groups)
  }
  return query
}

/** A page of a tenant's offers, the newest first. */
export function listGroups(
  db: Db,
  of: GroupFilter,
  page: { limit: number; offset: number; after: string | undefined },
): Promise<Row<'offer_group'>[]> {
  const rows = filteredGroups(db, of).selectAll().orderBy('lead_id', 'desc').limit(page.limit)
  return (page.after === undefined ? rows.offset(page.offset) : rows.where('lead_id', '<', page.after)).execute()
}

/** Number of offers. */
export async function countGroups(db: Db, of: GroupFilter): Promise<number> {
  const { count } = await filteredGroups(db, of)
    .select((eb) => eb.fn.countAll().as('count'))
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Characters of the product lists of these offers in a store, by group. */
export async function lengthsOfLists(
  db: Db,
  groupIds: readonly string[],
  storeId: string,
): Promise<Map<string, number>> {
  if (groupIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('offer')
    .innerJoin('offer_list', 'offer_list.list_id', 'offer.list_id')
    .select(['offer.group_id', (eb) => eb.fn.sum<number>(eb.fn('length', ['offer_list.products'])).as('length')])
    .where('offer.group_id', 'in', groupIds)
    .where('offer.is_active', '=', 1)
    .where('offer.store_id', '=', storeId)
    .groupBy('offer.group_id')
    .execute()
  return new Map(rows.map((row) => [row.group_id, Number(row.length)]))
}

/** Deletes the group of an offer. Delete the documents of the group first. */
export async function deleteGroup(db: Db, groupId: string): Promise<void> {
  await db.deleteFrom('offer_group').where('group_id', '=', groupId).execute()
}

/** Finds an offer of any tenant by its group id. */
export function readGroup(db: Db, groupId: string): Promise<Row<'offer_group'> | undefined> {
  return db.selectFrom('offer_group').selectAll().where('group_id', '=', groupId).executeTakeFirst()
}

/** Scope of an offer by its number of stores, from the specification. `stores` is the maximum number for a scope. */
const SCOPES = [
  { scope: 'LOCAL', stores: 1 },
  { scope: 'MULTI_STORE', stores: 10 },
  { scope: 'CITY_WIDE', stores: 30 },
  { scope: 'REGIONAL', stores: 100 },
] as const

export const OFFER_SCOPES = ['LOCAL', 'MULTI_STORE', 'CITY_WIDE', 'REGIONAL', 'NATIONAL'] as const
type OfferScope = (typeof OFFER_SCOPES)[number]

/** The scope of an offer with this number of stores. */
export function scopeOf(storeCount: number): OfferScope {
  return SCOPES.find(({ stores }) => storeCount <= stores)?.scope ?? 'NATIONAL'
}

export interface OfferOfCaller {
  group: Row<'offer_group'>
  /** All documents in order of creation. */
  branches: Row<'offer'>[]
  /** Documents of branches that are still in the offer. */
  active: Row<'offer'>[]
  /**
   * Document that the request identifies. For the id of a group, this is the
   * first active document.
   */
  named: Row<'offer'>
  /** Document with the products and prices: `named`, or another active document if `named` was removed. */
  priced: Row<'offer'>
}

/** Returns `offerId` or its synonym `id`. Throws 400 if the request contains both and they differ. */
export function offerIdOf({ offerId, id }: { offerId?: string | undefined; id?: string | undefined }): string {
  if (offerId !== undefined && id !== undefined && offerId !== id) throw invalid('id', 'differs from offerId')
  return offerId ?? id ?? ''
}

/**
 * Finds an offer with all its branches. Throws 404 if the offer is unknown. Throws 403 if the offer has branches in
 * stores that the key may not change.
 */
export async function offerOfCaller(call: Call, offerId: string): Promise<OfferOfCaller> {
  const caller = knownCaller(call.caller)
  const group = await findGroup(call.db, caller.tenant, offerId)
  if (!group) throw notFound('offer')
  const branches = await readBranches(call.db, group.group_id)
  const named = branches.find((row) => row.offer_id === offerId) ?? branches.find((row) => row.is_active === 1)
  if (!named) throw notFound('offer')
  const active = branches.filter((row) => row.is_active === 1)
  assertMayChangeAllBranches(
    call,
    active.map((row) => row.store_id),
    named.store_id,
  )
  const priced =
    named.is_active === 1 ? named : (active.find((row) => row.store_id === named.store_id) ?? active[0] ?? named)
  return { group, branches, active, named, priced }
}

/**
 * Throws 404 if the key is not bound to the named store. Throws 403 if the offer has branches in other stores to which
 * the key is not bound. Keys of the whole account may change all branches.
 */
export function assertMayChangeAllBranches(call: Call, storeIds: readonly string[], namedStoreId: string): void {
  const caller = knownCaller(call.caller)
  if (caller.kind === 'agent' || caller.storeIds === null) return
  const { storeIds: own } = caller
  if (!own.includes(namedStoreId)) throw notFound('offer')
  if (storeIds.every((id) => own.includes(id))) return
  throw new Failure('permission-denied', 'the offer has branches in stores that this key may not change', {
    reason: 'offer_of_other_stores',
  })
}
