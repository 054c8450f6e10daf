import { createHash } from 'node:crypto'
import { newId } from '../../../policy/ids.ts'
import { iso } from '../../platform/operations/fields.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { PickupOrderRow } from '../../platform/persistence/tables/click-and-collect.ts'
import type { PushDeliveryRow } from '../../platform/persistence/tables/push.ts'
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
export async function notifyOfOrder(call: Call, to: 'store' | 'customer', order: PickupOrderRow): Promise<void> {
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
  const rows = receivers.map((receiver): PushDeliveryRow => ({
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
