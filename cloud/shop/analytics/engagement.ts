import { changedRows, type Db } from '../../platform/persistence/database.ts'
import { invalid, notFound } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { dayOf, addToDay, type StoreKey, addDays, startOfDay } from './store-days.ts'
import { findGroup, readBranches } from '../offers/queries.ts'
import { readSandboxId, storesNamedBy } from '../offers/sandbox-offers.ts'
import { isTest } from '../purchases/present.ts'
import type { OfferDays } from './report.ts'

/** Engagements of shoppers with a store and its offers (ADR reports). */
export const ENGAGEMENTS = [
  'offer_click',
  'offer_favorite',
  'offer_unfavorite',
  'profile_view',
  'follow',
  'unfollow',
  'message',
] as const
type Engagement = (typeof ENGAGEMENTS)[number]

interface EngagementRequest {
  type: Engagement
  offerId?: string | undefined
  userId?: string | undefined
}

type EventContext = Pick<Call, 'db' | 'nowMs'>
type Rule = (call: EventContext, store: Row<'store'>, engaged: EngagementRequest) => Promise<boolean>

const RULES: Readonly<Record<Engagement, Rule>> = {
  profile_view: (call, store) => count(call, store, { profile_views: 1 }),
  message: (call, store) => count(call, store, { messages: 1 }),
  async offer_click(call, store, engaged) {
    await changeOfferCounter(call.db, await offerOfStore(call.db, store, offerOf(engaged)), 'click_count', 1)
    return count(call, store, { offer_clicks: 1 })
  },
  offer_favorite: favorite,
  offer_unfavorite: unfavorite,
  follow: (call, store, engaged) => follow(call, store, userOf(engaged)),
  unfollow: (call, store, engaged) => unfollow(call, store, userOf(engaged)),
}

/** Counts an engagement. Returns false if nothing changed. Throws 400 if the type needs an id that is missing. */
export function countEngagement(call: EventContext, store: Row<'store'>, engaged: EngagementRequest): Promise<boolean> {
  return RULES[engaged.type](call, store, engaged)
}

async function count(
  { db, nowMs }: EventContext,
  store: StoreKey,
  counts: Parameters<typeof addToDay>[3],
): Promise<true> {
  await addToDay(db, store, dayOf(nowMs), counts)
  return true
}

/** Counts a favourite. A shopper with an id can like an offer once. All anonymous likes are counted. */
async function favorite(call: EventContext, store: Row<'store'>, engaged: EngagementRequest): Promise<boolean> {
  const { db, nowMs } = call
  const offerId = await offerOfStore(db, store, offerOf(engaged))
  if (engaged.userId !== undefined) {
    const row = {
      store_id: store.store_id,
      offer_id: offerId,
      user_id: engaged.userId,
      tenant: store.tenant,
      since_ms: nowMs,
    }
    const insert = db
      .insertInto('offer_favorite')
      .values(row)
      .onConflict((c) => c.columns(['store_id', 'offer_id', 'user_id']).doNothing())
    if ((await changedRows(db, insert)) === 0) return false
  }
  await changeOfferCounter(db, offerId, 'favorited_count', 1)
  return count(call, store, { offer_favorites: 1 })
}

/** Removes a favourite. Also subtracts the favourite from the day on which it was counted. */
async function unfavorite(
  { db, nowMs }: EventContext,
  store: Row<'store'>,
  engaged: EngagementRequest,
): Promise<boolean> {
  const offerId = await offerOfStore(db, store, offerOf(engaged))
  let sinceMs = nowMs
  if (engaged.userId !== undefined) {
    const removed = await db
      .deleteFrom('offer_favorite')
      .where('store_id', '=', store.store_id)
      .where('offer_id', '=', offerId)
      .where('user_id', '=', engaged.userId)
      .returning('since_ms')
      .executeTakeFirst()
    if (!removed) return false
    sinceMs = removed.since_ms
  }
  await changeOfferCounter(db, offerId, 'favorited_count', -1)
  await addToDay(db, store, dayOf(sinceMs), { offer_favorites: -1 })
  return true
}

async function follow(call: EventContext, store: Row<'store'>, userId: string): Promise<boolean> {
  const insert = call.db
    .insertInto('follower')
    .values({ store_id: store.store_id, user_id: userId, tenant: store.tenant, since_ms: call.nowMs })
    .onConflict((c) => c.columns(['store_id', 'user_id']).doNothing())
  if ((await changedRows(call.db, insert)) === 0) return false
  return count(call, store, { new_followers: 1 })
}

/**
 * Removes a follower. On the day of the follow, the removal reduces `new_followers`. On a later day, the removal
 * increases `lost_followers` of that later day.
 */
export async function unfollow(call: EventContext, store: StoreKey, userId: string): Promise<boolean> {
  const removed = await call.db
    .deleteFrom('follower')
    .where('store_id', '=', store.store_id)
    .where('user_id', '=', userId)
    .returning('since_ms')
    .executeTakeFirst()
  if (!removed) return false
  const cameToday = dayOf(removed.since_ms) === dayOf(call.nowMs)
  return count(call, store, cameToday ? { new_followers: -1 } : { lost_followers: 1 })
}

function offerOf({ type, offerId }: EngagementRequest): string {
  if (offerId === undefined) throw invalid('offerId', `is needed for ${type}`, 'missing')
  return offerId
}

function userOf({ type, userId }: EngagementRequest): string {
  if (userId === undefined) throw invalid('userId', `is needed for ${type}`, 'missing')
  return userId
}

/** Queries of the analytics area about offers. */

/** Maximum number of branch documents of a store in one report. */
const OFFERS_LIMIT = 10_000

/**
 * Returns the id of the store's branch document for any id of the offer. Throws 404 if the store is not in the offer.
 * The sandbox does not store offers, so a sandbox id itself contains the stores.
 */
async function offerOfStore(db: Db, store: StoreKey, offerId: string): Promise<string> {
  if (isTest(store.tenant)) {
    const id = readSandboxId(store.tenant, offerId)
    if (!id || !(await storesNamedBy(db, store.tenant, id)).includes(store.store_id)) throw notFound('offer')
    return offerId
  }
  const group = await findGroup(db, store.tenant, offerId)
  const branch = group && (await readBranches(db, group.group_id)).find((row) => row.store_id === store.store_id)
  if (!branch) throw notFound('offer')
  return branch.offer_id
}

/** Increases or decreases a counter of a branch document. */
async function changeOfferCounter(
  db: Db,
  offerId: string,
  column: 'click_count' | 'favorited_count',
  change: 1 | -1,
): Promise<void> {
  let query = db
    .updateTable('offer')
    .set((eb) => ({ [column]: eb(column, '+', change) }))
    .where('offer_id', '=', offerId)
  if (change < 0) query = query.where(column, '>', 0)
  await query.execute()
}

/** Validity of the store's offers that were active on any day from … to. */
export async function offersWithin(db: Db, storeId: string, from: string, to: string): Promise<OfferDays[]> {
  const rows = await db
    .selectFrom('offer')
    .select(['valid_from_ms', 'valid_to_ms'])
    .where('store_id', '=', storeId)
    .where('is_active', '=', 1)
    .where('valid_to_ms', '>', startOfDay(from))
    .where('valid_from_ms', '<', startOfDay(addDays(to, 1)))
    .limit(OFFERS_LIMIT)
    .execute()
  return rows.map((row) => ({ from: dayOf(row.valid_from_ms), to: dayOf(row.valid_to_ms - 1) }))
}
