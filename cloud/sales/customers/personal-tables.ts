import { newId } from '../../../policy/ids.ts'
import { unfollow } from '../../shop/analytics/engagement.ts'
import { deleteRequests, messagesOf } from '../../shop/assistance/queries.ts'
import { toRequest } from '../../shop/assistance/requests.ts'
import { iso, definedFields } from '../../platform/operations/fields.ts'
import { loyaltyEntries, loyaltyMemberships } from './personal-loyalty.ts'
import { erased, personalPage, ROWS_AT_ONCE, type PersonalTable, grouped, type Customer } from './personal-table.ts'
import { deleteSubscription } from '../../shop/push/subscriptions.ts'
import { withinLines } from '../../platform/operations/paging.ts'
import { sql } from 'kysely'
import { changedRows, type Db } from '../../platform/persistence/database.ts'

/** A customer's purchases after this id. */
function purchasesOf(db: Db, { tenant, userId }: Customer, after: string, limit: number) {
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
function ordersOf(db: Db, { tenant, userId }: Customer, after: string, limit: number) {
  const own = db.selectFrom('pickup_order').selectAll().where('tenant', '=', tenant).where('user_id', '=', userId)
  return own.where('order_id', '>', after).orderBy('order_id').limit(limit).execute()
}

/** A customer's sessions after this id. */
function sessionsOf(db: Db, { tenant, userId }: Customer, after: string, limit: number) {
  const own = db
    .selectFrom('shopping_session')
    .select(['session_id', 'store_id', 'created_ms'])
    .where('tenant', '=', tenant)
    .where('user_id', '=', userId)
  return own.where('session_id', '>', after).orderBy('session_id').limit(limit).execute()
}

/** Stores that the customer follows, after this store id. */
function followsOf(db: Db, { tenant, userId }: Customer, after: string, limit: number) {
  const own = db.selectFrom('follower').selectAll().where('tenant', '=', tenant).where('user_id', '=', userId)
  return own.where('store_id', '>', after).orderBy('store_id').limit(limit).execute()
}

/** Offers that the customer likes, after position `{storeId} {offerId}`. */
function likesOf(db: Db, { tenant, userId }: Customer, after: string, limit: number) {
  const [storeId = '', offerId = ''] = after.split(' ')
  const own = db.selectFrom('offer_favorite').selectAll().where('tenant', '=', tenant).where('user_id', '=', userId)
  const rest = own.where((eb) =>
    eb.or([eb('store_id', '>', storeId), eb.and([eb('store_id', '=', storeId), eb('offer_id', '>', offerId)])]),
  )
  return rest.orderBy('store_id').orderBy('offer_id').limit(limit).execute()
}

/** A customer's requests for help after this id. */
function requestsOf(db: Db, { tenant, userId }: Customer, after: string, limit: number) {
  const own = db.selectFrom('assistance_request').selectAll().where('tenant', '=', tenant).where('user_id', '=', userId)
  return own.where('request_id', '>', after).orderBy('request_id').limit(limit).execute()
}

/** A customer's push subscriptions after this id. */
function pushSubscriptionsOf(db: Db, { tenant, userId }: Customer, after: string, limit: number) {
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
async function erasePushDeliveries(db: Db, { tenant, userId }: Customer, limit: number): Promise<number> {
  const some = db
    .selectFrom('push_delivery')
    .select('delivery_id')
    .where('tenant', '=', tenant)
    .where('user_id', '=', userId)
    .limit(limit)
  return changedRows(db, db.deleteFrom('push_delivery').where('delivery_id', 'in', some))
}

/** Stored events of one account that one step reads, so that the step stays short. */
const EVENTS_AT_ONCE = 5_000

/**
 * Replaces the customer id in stored events after this number of an event. Their data has no index, so each step reads
 * some of them.
 */
async function eraseFromOutbox(
  db: Db,
  { tenant, userId }: Customer,
  pseudonym: string,
  after: string,
): Promise<{ count: number; next: string | undefined }> {
  const named = `"userId":${JSON.stringify(userId)}`
  const afterSeq = Number(after || -1)
  const ofTenant = db.selectFrom('outbox_event').where('tenant', '=', tenant)
  const read = ofTenant.select('seq').where('seq', '>', afterSeq).orderBy('seq').limit(EVENTS_AT_ONCE)
  const { last, count } = await db
    .selectFrom(read.as('read'))
    .select((eb) => [eb.fn.max<number | null>('seq').as('last'), eb.fn.countAll<number>().as('count')])
    .executeTakeFirstOrThrow()
  const isEnd = count < EVENTS_AT_ONCE
  // `replace` compares exactly, while LIKE ignores case on SQLite.
  const naming = ofTenant
    .select(['event_id', 'data'])
    .where(sql<boolean>`replace(data, ${named}, '') <> data`)
    .limit(ROWS_AT_ONCE)
  const numbered = naming.where('seq', '>', afterSeq).where('seq', '<=', last ?? afterSeq)
  // Those that the dispatcher has not numbered yet are few, and come last.
  const rows = [...(await numbered.execute()), ...(isEnd ? await naming.where('seq', 'is', null).execute() : [])]
  for (const { event_id, data } of rows) {
    const changed = { data: data.replaceAll(named, `"userId":"${pseudonym}"`) }
    await db
      .updateTable('outbox_event')
      .set(changed)
      .where('event_id', '=', event_id)
      .where('tenant', '=', tenant)
      .execute()
  }
  // Changed rows are not found again, so the step may begin before them.
  const isFull = rows.length >= ROWS_AT_ONCE
  return { count: rows.length, next: isFull ? after : isEnd ? undefined : String(last) }
}

/** Erasure keeps purchases. A random pseudonym replaces the buyer. */

const purchases: PersonalTable = {
  table: 'purchase',
  name: 'purchases',
  async page(db, who, after) {
    const found = await purchasesOf(db, who, after, ROWS_AT_ONCE)
    const rows = await withinLines(db, 'purchase_line', found)
    const ids = rows.map((row) => row.purchase_id)
    const lines =
      ids.length === 0
        ? []
        : await db.selectFrom('purchase_line').selectAll().where('purchase_id', 'in', ids).orderBy('line_no').execute()
    const items = grouped(ids, lines, (line) => line.purchase_id)
    return personalPage(
      rows,
      (row) => row.purchase_id,
      (row) => ({
        purchaseId: row.purchase_id,
        storeId: row.store_id,
        sessionId: row.session_id,
        status: row.status,
        currency: row.currency,
        totalCent: row.total_cent,
        createdAt: iso(row.created_ms),
        ...definedFields({ completedAt: row.completed_ms === null ? null : iso(row.completed_ms) }),
        items: (items.get(row.purchase_id) ?? []).map((line) => ({
          name: line.name,
          ...definedFields({ ean: line.ean }),
          quantity: line.quantity,
          priceUnit: line.price_cent,
          vat: line.vat,
        })),
      }),
      rows.length < found.length || found.length === ROWS_AT_ONCE,
    )
  },
  async erase({ db, services }, who) {
    const ids = (await purchasesOf(db, who, '', ROWS_AT_ONCE)).map((row) => row.purchase_id)
    if (ids.length === 0) return erased(0)
    const pseudonym = newId('anon', services.platform)
    await db
      .updateTable('purchase')
      .set((eb) => ({ user_id: pseudonym, rev: eb('rev', '+', 1) }))
      .where('purchase_id', 'in', ids)
      .execute()
    return erased(ids.length)
  },
}

const pickupOrders: PersonalTable = {
  table: 'pickup_order',
  name: 'orders',
  async page(db, who, after) {
    const found = await ordersOf(db, who, after, ROWS_AT_ONCE)
    const rows = await withinLines(db, 'pickup_order_line', found)
    const ids = rows.map((row) => row.order_id)
    const lines =
      ids.length === 0
        ? []
        : await db.selectFrom('pickup_order_line').selectAll().where('order_id', 'in', ids).orderBy('line_no').execute()
    const items = grouped(ids, lines, (line) => line.order_id)
    return personalPage(
      rows,
      (row) => row.order_id,
      (row) => ({
        orderId: row.order_id,
        storeId: row.store_id,
        status: row.status,
        currency: row.currency,
        totalCent: row.total_cent,
        ...definedFields({ note: row.note }),
        createdAt: iso(row.created_ms),
        items: (items.get(row.order_id) ?? []).map((line) => ({
          name: line.name,
          ean: line.ean,
          quantity: line.quantity,
          priceUnit: line.price_cent,
          vat: line.vat,
        })),
      }),
      rows.length < found.length || found.length === ROWS_AT_ONCE,
    )
  },
  /** A random pseudonym replaces the customer. An open order can still be picked up with its code. */
  async erase({ db, services }, who) {
    const ids = (await ordersOf(db, who, '', ROWS_AT_ONCE)).map((row) => row.order_id)
    if (ids.length === 0) return erased(0)
    const pseudonym = newId('anon', services.platform)
    await db
      .updateTable('pickup_order')
      .set((eb) => ({ user_id: pseudonym, note: null, rev: eb('rev', '+', 1) }))
      .where('order_id', 'in', ids)
      .execute()
    return erased(ids.length)
  },
}

const sessions: PersonalTable = {
  table: 'shopping_session',
  name: 'sessions',
  async page(db, who, after) {
    const rows = await sessionsOf(db, who, after, ROWS_AT_ONCE)
    return personalPage(
      rows,
      (row) => row.session_id,
      (row) => ({ sessionId: row.session_id, storeId: row.store_id, checkedInAt: iso(row.created_ms) }),
    )
  },
  async erase({ db }, who) {
    const rows = await sessionsOf(db, who, '', ROWS_AT_ONCE)
    if (rows.length > 0)
      await db
        .deleteFrom('shopping_session')
        .where(
          'session_id',
          'in',
          rows.map((row) => row.session_id),
        )
        .execute()
    return erased(rows.length)
  },
}

const follows: PersonalTable = {
  table: 'follower',
  name: 'follows',
  async page(db, who, after) {
    const rows = await followsOf(db, who, after, ROWS_AT_ONCE)
    return personalPage(
      rows,
      (row) => row.store_id,
      (row) => ({ storeId: row.store_id, since: iso(row.since_ms) }),
    )
  },
  /** Removes the follower. The reports count the erasure as an unfollow. */
  async erase(call, who) {
    const rows = await followsOf(call.db, who, '', ROWS_AT_ONCE)
    for (const row of rows) await unfollow(call, row, who.userId)
    return erased(rows.length)
  },
}

const likes: PersonalTable = {
  table: 'offer_favorite',
  name: 'favorites',
  async page(db, who, after) {
    const rows = await likesOf(db, who, after, ROWS_AT_ONCE)
    return personalPage(
      rows,
      (row) => `${row.store_id} ${row.offer_id}`,
      (row) => ({ storeId: row.store_id, offerId: row.offer_id, since: iso(row.since_ms) }),
    )
  },
  async erase({ db }, who) {
    const rows = await likesOf(db, who, '', ROWS_AT_ONCE)
    for (const row of rows) {
      await db
        .deleteFrom('offer_favorite')
        .where('store_id', '=', row.store_id)
        .where('offer_id', '=', row.offer_id)
        .where('user_id', '=', who.userId)
        .execute()
    }
    return erased(rows.length)
  },
}

const assistance: PersonalTable = {
  table: 'assistance_request',
  name: 'assistanceRequests',
  async page(db, who, after) {
    const rows = await requestsOf(db, who, after, ROWS_AT_ONCE)
    const messages = await messagesOf(
      db,
      rows.map((row) => row.request_id),
    )
    return personalPage(
      rows,
      (row) => row.request_id,
      (row) => toRequest(row, {}, messages.get(row.request_id) ?? []),
    )
  },
  async erase({ db }, who) {
    const rows = await requestsOf(db, who, '', ROWS_AT_ONCE)
    await deleteRequests(
      db,
      rows.map((row) => row.request_id),
    )
    return erased(rows.length)
  },
}

const pushSubscriptions: PersonalTable = {
  table: 'push_subscription',
  name: 'pushSubscriptions',
  async page(db, who, after) {
    const rows = await pushSubscriptionsOf(db, who, after, ROWS_AT_ONCE)
    return personalPage(
      rows,
      (row) => row.subscription_id,
      (row) => ({ subscriptionId: row.subscription_id, kind: row.kind, since: iso(row.created_ms) }),
    )
  },
  async erase({ db }, who) {
    const rows = await pushSubscriptionsOf(db, who, '', ROWS_AT_ONCE)
    for (const row of rows) await deleteSubscription(db, row.subscription_id)
    return erased(rows.length)
  },
}

/** Notifications that wait to be sent, including those to endpoints of the merchant. */
const pushDeliveries: PersonalTable = {
  table: 'push_delivery',
  erase: async ({ db }, who) => erased(await erasePushDeliveries(db, who, ROWS_AT_ONCE)),
}

/** Stored events contain the customer id in their data. */
const events: PersonalTable = {
  table: 'outbox_event',
  erase: ({ db, services }, who, after) => eraseFromOutbox(db, who, newId('anon', services.platform), after),
}

/**
 * All tables with customer ids, in the order of erasure. Add new tables here; a test finds all columns named `user_id`.
 */
export const PERSONAL_TABLES: readonly PersonalTable[] = [
  purchases,
  pickupOrders,
  sessions,
  loyaltyEntries,
  loyaltyMemberships,
  follows,
  likes,
  assistance,
  pushSubscriptions,
  pushDeliveries,
  events,
]
