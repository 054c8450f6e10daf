import { sql } from 'kysely'
import { changedRows, type Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { createHash } from 'node:crypto'
import { newId } from '../../../policy/ids.ts'
import { iso } from '../../platform/operations/fields.ts'
import type { Call } from '../../platform/operations/operation.ts'
import { receiversOf } from './subscriptions.ts'

/** Life of a notice, ms. */
const NOTICE_LIFE_MS = 24 * 3_600_000
/** Maximum number of subscriptions that get one notice. */
const RECEIVERS_LIMIT = 200
/** Maximum number of queued notices of one account. */
const WAITING_LIMIT = 10_000
/** Order states with urgent notices. */
const URGENT: ReadonlySet<string> = new Set(['pending', 'ready'])

/**
 * Enqueues push notices to the store or the customer of an order, in the transaction of the order's change. For test
 * data the function only logs a line.
 */
export async function notifyOfOrder(call: Call, to: 'store' | 'customer', order: Row<'pickup_order'>): Promise<void> {
  const { db, nowMs, services } = call
  const { tenant, order_id: orderId, store_id: storeId, user_id: userId, status } = order
  const about = { to, storeId, orderId, status, ...(to === 'customer' && { userId }) }
  if (!tenant.endsWith('.live')) {
    call.afterCommit(() => services.log.info(about, 'push notice'))
    return
  }
  const targets = [to === 'store' ? `store:${storeId}` : `user:${userId}`, 'all']
  const receivers = await receiversOf(db, tenant, targets, { limit: RECEIVERS_LIMIT, nowMs })
  if (receivers.length === 0) return
  if (await isQueueFull(db, tenant)) {
    call.afterCommit(() =>
      services.log.warn({ tenant, orderId }, 'too many push notices wait: a new notice was discarded'),
    )
    return
  }
  const noticeId = newId('psh', services.platform)
  const body = JSON.stringify({ id: noticeId, type: 'clickcollect.order', ...about, at: iso(nowMs) })
  const rows = receivers.map((receiver): Row<'push_delivery'> => ({
    delivery_id: newId('pdl', services.platform),
    tenant,
    subscription_id: receiver.subscription_id,
    user_id: to === 'customer' ? userId : null,
    body,
    urgency: URGENT.has(status) ? 'high' : 'normal',
    topic: topicOf(orderId),
    attempts: 0,
    due_ms: nowMs,
    lease_id: null,
    expires_ms: nowMs + NOTICE_LIFE_MS,
  }))
  await db.insertInto('push_delivery').values(rows).execute()
  call.afterCommit(services.push.wake)
}

/** True if no more notices of this account may be queued. */
export async function isQueueFull(db: Db, tenant: string): Promise<boolean> {
  const last = await db
    .selectFrom('push_delivery')
    .select('delivery_id')
    .where('tenant', '=', tenant)
    .offset(WAITING_LIMIT - 1)
    .limit(1)
    .executeTakeFirst()
  return last !== undefined
}

/** `Topic` of RFC 8030: at most 32 URL-safe characters. */
export function topicOf(subject: string): string {
  return createHash('sha256').update(subject).digest('base64url').slice(0, 32)
}

/** Life of a lease, ms. The lease is longer than an attempt plus the recording of its outcome. */
const LEASE_MS = 30_000
/** Time from each failed attempt to the next, ms. After the last attempt the notice is discarded. */
export const RETRY_DELAYS_MS: readonly number[] = [10_000, 60_000, 300_000, 1_800_000, 7_200_000, 21_600_000]
/** Maximum time to the next attempt, ms. A later due time came from a wrong clock, so such a notice is due now. */
const LONGEST_WAIT_MS = 24 * 3_600_000

/** An account with queued notices, and the due time of its first notice. */
export interface PendingAccount {
  tenant: string
  due_ms: number
}

/**
 * Lists accounts with queued notices. The query jumps in the index from account to account and does not read each
 * notice.
 */
export async function readPending(db: Db): Promise<PendingAccount[]> {
  const { rows } = await sql<PendingAccount>`
    with recursive waiting (tenant) as (
      select min(tenant) from push_delivery
      union all
      select (select min(d.tenant) from push_delivery d where d.tenant > waiting.tenant) from waiting where waiting.tenant is not null
    )
    select waiting.tenant, (select min(d.due_ms) from push_delivery d where d.tenant = waiting.tenant) as due_ms
    from waiting where waiting.tenant is not null order by 1`.execute(db)
  return rows
}

/** True if a notice with this due time is due now. */
export function isDue(dueMs: number, nowMs: number): boolean {
  return dueMs <= nowMs || dueMs > nowMs + LONGEST_WAIT_MS
}

/** Data for one attempt. */
export interface Job {
  readonly delivery: Row<'push_delivery'>
  readonly subscription: Row<'push_subscription'>
}

/** Leases up to `count` due notices of an account. Other processes skip these notices until the lease expires. */
export async function lease(db: Db, tenant: string, leaseId: string, count: number, nowMs: number): Promise<Job[]> {
  await db
    .updateTable('push_delivery')
    .set({ due_ms: nowMs })
    .where('tenant', '=', tenant)
    .where('due_ms', '>', nowMs + LONGEST_WAIT_MS)
    .execute()
  const due = db
    .selectFrom('push_delivery')
    .select('delivery_id')
    .where('tenant', '=', tenant)
    .where('due_ms', '<=', nowMs)
    .orderBy('due_ms')
    .orderBy('delivery_id')
    .limit(count)
  const taken = await db
    .updateTable('push_delivery')
    .set({ lease_id: leaseId, due_ms: nowMs + LEASE_MS })
    .where('delivery_id', 'in', due)
    .where('due_ms', '<=', nowMs)
    .returningAll()
    .execute()
  if (taken.length === 0) return []
  const subscriptions = await db
    .selectFrom('push_subscription')
    .selectAll()
    .where(
      'subscription_id',
      'in',
      taken.map((row) => row.subscription_id),
    )
    .execute()
  const byId = new Map(subscriptions.map((row) => [row.subscription_id, row]))
  return taken.flatMap((delivery) => {
    const subscription = byId.get(delivery.subscription_id)
    return subscription ? [{ delivery, subscription }] : []
  })
}

/** Deletes a notice. Returns false if another process has taken over the lease. */
export async function deleteNotice(db: Db, { delivery }: Job): Promise<boolean> {
  const deletion = db
    .deleteFrom('push_delivery')
    .where('delivery_id', '=', delivery.delivery_id)
    .where('lease_id', '=', delivery.lease_id)
  return (await changedRows(db, deletion)) > 0
}

/** Releases the lease of a notice and makes it due at `dueMs`. */
export async function reschedule(db: Db, { delivery }: Job, dueMs: number, attempts: number): Promise<void> {
  await db
    .updateTable('push_delivery')
    .set({ lease_id: null, due_ms: dueMs, attempts })
    .where('delivery_id', '=', delivery.delivery_id)
    .where('lease_id', '=', delivery.lease_id)
    .execute()
}
