import { sql } from 'kysely'
import { changedRows, type Db } from '../../platform/persistence/database.ts'
import type { Customer } from './personal-table.ts'

/** A customer's purchases after this id. */
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

/** A customer's pick-up orders after this id. */
export function ordersOf(db: Db, { tenant, userId }: Customer, after: string, limit: number) {
  const own = db.selectFrom('pickup_order').selectAll().where('tenant', '=', tenant).where('user_id', '=', userId)
  return own.where('order_id', '>', after).orderBy('order_id').limit(limit).execute()
}

/** A customer's sessions after this id. */
export function sessionsOf(db: Db, { tenant, userId }: Customer, after: string, limit: number) {
  const own = db
    .selectFrom('shopping_session')
    .select(['session_id', 'store_id', 'created_ms'])
    .where('tenant', '=', tenant)
    .where('user_id', '=', userId)
  return own.where('session_id', '>', after).orderBy('session_id').limit(limit).execute()
}

/** Stores that the customer follows, after this store id. */
export function followsOf(db: Db, { tenant, userId }: Customer, after: string, limit: number) {
  const own = db.selectFrom('follower').selectAll().where('tenant', '=', tenant).where('user_id', '=', userId)
  return own.where('store_id', '>', after).orderBy('store_id').limit(limit).execute()
}

/** Offers that the customer likes, after position `{storeId} {offerId}`. */
export function likesOf(db: Db, { tenant, userId }: Customer, after: string, limit: number) {
  const [storeId = '', offerId = ''] = after.split(' ')
  const own = db.selectFrom('offer_favorite').selectAll().where('tenant', '=', tenant).where('user_id', '=', userId)
  const rest = own.where((eb) =>
    eb.or([eb('store_id', '>', storeId), eb.and([eb('store_id', '=', storeId), eb('offer_id', '>', offerId)])]),
  )
  return rest.orderBy('store_id').orderBy('offer_id').limit(limit).execute()
}

/** A customer's requests for help after this id. */
export function requestsOf(db: Db, { tenant, userId }: Customer, after: string, limit: number) {
  const own = db.selectFrom('assistance_request').selectAll().where('tenant', '=', tenant).where('user_id', '=', userId)
  return own.where('request_id', '>', after).orderBy('request_id').limit(limit).execute()
}

/** A customer's push subscriptions after this id. */
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

/** Deletes pending notifications about a customer. Returns their number. */
export async function erasePushDeliveries(db: Db, { tenant, userId }: Customer, limit: number): Promise<number> {
  const some = db
    .selectFrom('push_delivery')
    .select('delivery_id')
    .where('tenant', '=', tenant)
    .where('user_id', '=', userId)
    .limit(limit)
  return changedRows(db, db.deleteFrom('push_delivery').where('delivery_id', 'in', some))
}

/** Replaces the customer id in stored events. Returns the number of changed events. */
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
    // `replace` compares exactly, while LIKE ignores case on SQLite.
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
