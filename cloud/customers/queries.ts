import { sql } from 'kysely'
import type { Db } from '../persistence/database.ts'
import type { Customer } from './personal-table.ts'

/** Purchases after this id. */
export function purchasesOf(db: Db, { tenant, userId }: Customer, after: string, limit: number) {
  return db
    .selectFrom('purchase')
    .select(['purchase_id', 'store_id', 'session_id', 'status', 'currency', 'total_cent', 'created_ms', 'completed_ms'])
    .where('tenant', '=', tenant)
    .where('user_id', '=', userId)
    .where('purchase_id', '>', after)
    .orderBy('purchase_id')
    .limit(limit)
    .execute()
}

/** Orders to be picked up, after this id. */
export function ordersOf(db: Db, { tenant, userId }: Customer, after: string, limit: number) {
  const own = db.selectFrom('pickup_order').selectAll().where('tenant', '=', tenant).where('user_id', '=', userId)
  return own.where('order_id', '>', after).orderBy('order_id').limit(limit).execute()
}

/** Sessions after this id. */
export function sessionsOf(db: Db, { tenant, userId }: Customer, after: string, limit: number) {
  const own = db
    .selectFrom('shopping_session')
    .select(['session_id', 'store_id', 'created_ms'])
    .where('tenant', '=', tenant)
    .where('user_id', '=', userId)
  return own.where('session_id', '>', after).orderBy('session_id').limit(limit).execute()
}

/** Stores that the customer follows, after this one. */
export function followsOf(db: Db, { tenant, userId }: Customer, after: string, limit: number) {
  const own = db.selectFrom('follower').selectAll().where('tenant', '=', tenant).where('user_id', '=', userId)
  return own.where('store_id', '>', after).orderBy('store_id').limit(limit).execute()
}

/** Offers that the customer likes, after this one: `{storeId} {offerId}`. */
export function likesOf(db: Db, { tenant, userId }: Customer, after: string, limit: number) {
  const [storeId = '', offerId = ''] = after.split(' ')
  const own = db.selectFrom('offer_favorite').selectAll().where('tenant', '=', tenant).where('user_id', '=', userId)
  const rest = own.where((eb) =>
    eb.or([eb('store_id', '>', storeId), eb.and([eb('store_id', '=', storeId), eb('offer_id', '>', offerId)])]),
  )
  return rest.orderBy('store_id').orderBy('offer_id').limit(limit).execute()
}

/** The customer's requests for help after this id. */
export function requestsOf(db: Db, { tenant, userId }: Customer, after: string, limit: number) {
  const own = db.selectFrom('assistance_request').selectAll().where('tenant', '=', tenant).where('user_id', '=', userId)
  return own.where('request_id', '>', after).orderBy('request_id').limit(limit).execute()
}

/** Push subscriptions of the customer, after this id. */
export function pushSubscriptionsOf(db: Db, { tenant, userId }: Customer, after: string, limit: number) {
  return db
    .selectFrom('push_subscription')
    .select(['subscription_id', 'kind', 'created_ms'])
    .where('tenant', '=', tenant)
    .where('user_id', '=', userId)
    .where('subscription_id', '>', after)
    .orderBy('subscription_id')
    .limit(limit)
    .execute()
}

/** Drops notices about the customer that wait; answers how many. */
export async function erasePushDeliveries(db: Db, { tenant, userId }: Customer, limit: number): Promise<number> {
  const some = db
    .selectFrom('push_delivery')
    .select('delivery_id')
    .where('tenant', '=', tenant)
    .where('user_id', '=', userId)
    .limit(limit)
  const gone = await db.deleteFrom('push_delivery').where('delivery_id', 'in', some).executeTakeFirst()
  return Number(gone.numDeletedRows)
}

/** Puts a pseudonym into events that name the customer; answers how many did. */
export async function eraseFromOutbox(
  db: Db,
  { tenant, userId }: Customer,
  pseudonym: string,
  limit: number,
): Promise<number> {
  const named = `"userId":${JSON.stringify(userId)}`
  const rows = await db
    .selectFrom('outbox_event')
    .select(['event_id', 'data'])
    .where('tenant', '=', tenant)
    // Not LIKE, which takes upper for lower case on one of our databases.
    .where(sql<boolean>`replace(data, ${named}, '') <> data`)
    .limit(limit)
    .execute()
  for (const { event_id, data } of rows) {
    const erased = { data: data.replaceAll(named, `"userId":"${pseudonym}"`) }
    await db
      .updateTable('outbox_event')
      .set(erased)
      .where('event_id', '=', event_id)
      .where('tenant', '=', tenant)
      .execute()
  }
  return rows.length
}
