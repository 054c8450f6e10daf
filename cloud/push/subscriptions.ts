import { createHash } from 'node:crypto'
import type { Sealer } from '../authority/sealing.ts'
import type { Db } from '../persistence/database.ts'
import type { PushSubscriptionRow } from '../persistence/tables/push.ts'

/** Where a notice goes, and the keys for it. It is kept sealed. */
export interface PushTarget {
  readonly endpoint: string
  /** Of a browser, in base64url. */
  readonly keys?: { readonly p256dh: string; readonly auth: string }
  /** Of a merchant's endpoint: signs what is sent. */
  readonly secret?: string
}

const contextOf = (subscriptionId: string) => `push_subscription/${subscriptionId}`

/** The target as it is kept, bound to its subscription. */
export function sealTarget(sealer: Sealer, subscriptionId: string, target: PushTarget): string {
  return sealer.seal(Buffer.from(JSON.stringify(target)), contextOf(subscriptionId))
}

/** The target of a subscription. */
export function openTarget(sealer: Sealer, row: Pick<PushSubscriptionRow, 'subscription_id' | 'sealed'>): PushTarget {
  return JSON.parse(sealer.open(row.sealed, contextOf(row.subscription_id)).toString('utf8')) as PushTarget
}

/** Names an endpoint without telling it. */
export function endpointHash(endpoint: string): string {
  return createHash('sha256').update(endpoint).digest('base64url')
}

/** Subscriptions of these targets. */
export function subscriptionsOf(
  db: Db,
  tenant: string,
  targets: readonly string[],
  limit: number,
): Promise<PushSubscriptionRow[]> {
  return db
    .selectFrom('push_subscription')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('target', 'in', targets)
    .orderBy('subscription_id')
    .limit(limit)
    .execute()
}

/** All subscriptions of one endpoint. */
export function subscriptionsAt(db: Db, tenant: string, hash: string): Promise<PushSubscriptionRow[]> {
  return db
    .selectFrom('push_subscription')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('endpoint_hash', '=', hash)
    .execute()
}

/** Whether the tenant has this many subscriptions. */
export async function hasSubscriptions(db: Db, tenant: string, count: number): Promise<boolean> {
  const nth = await db
    .selectFrom('push_subscription')
    .select('target')
    .where('tenant', '=', tenant)
    .orderBy('target')
    .offset(count - 1)
    .limit(1)
    .executeTakeFirst()
  return nth !== undefined
}

/** One subscription by its id. */
export function findSubscription(db: Db, subscriptionId: string): Promise<PushSubscriptionRow | undefined> {
  return db.selectFrom('push_subscription').selectAll().where('subscription_id', '=', subscriptionId).executeTakeFirst()
}

/** Removes a subscription and what waits for it. */
export async function deleteSubscription(db: Db, subscriptionId: string): Promise<void> {
  await db.deleteFrom('push_subscription').where('subscription_id', '=', subscriptionId).execute()
}
