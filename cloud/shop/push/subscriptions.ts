import { createHash } from 'node:crypto'
import type { Sealer } from '../../platform/authority/sealing.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { IDLE_MS } from '../../platform/users/sessions.ts'

/** Endpoint of a subscription and the keys of the endpoint. Stored sealed. */
export interface PushTarget {
  readonly endpoint: string
  /** Keys of a browser, base64url. */
  readonly keys?: { readonly p256dh: string; readonly auth: string }
  /** Signs notices to a merchant's endpoint. */
  readonly secret?: string
}

const contextOf = (subscriptionId: string) => `push_subscription/${subscriptionId}`

/** Seals a target for storage; the result is bound to its subscription. */
export function sealTarget(sealer: Sealer, subscriptionId: string, target: PushTarget): string {
  return sealer.seal(Buffer.from(JSON.stringify(target)), contextOf(subscriptionId))
}

/** Opens the target of a subscription. */
export function openTarget(
  sealer: Sealer,
  row: Pick<Row<'push_subscription'>, 'subscription_id' | 'sealed'>,
): PushTarget {
  return JSON.parse(sealer.open(row.sealed, contextOf(row.subscription_id)).toString('utf8')) as PushTarget
}

/** SHA-256 of an endpoint, base64url. */
export function endpointHash(endpoint: string): string {
  return createHash('sha256').update(endpoint).digest('base64url')
}

/** Target of the notices about alarms to a session of a console user. */
export const alarmTarget = (sessionId: string) => `session:${sessionId}`

/** True if the subscription is for notices about alarms, not about orders. */
export const isAboutAlarms = ({ target }: Pick<Row<'push_subscription'>, 'target'>) => target.startsWith('session:')

/** Subscriptions of these targets that get notices now: those of sessions until the session ends. */
export function receiversOf(
  db: Db,
  tenant: string,
  targets: readonly string[],
  { limit, nowMs }: { limit: number; nowMs: number },
): Promise<Row<'push_subscription'>[]> {
  return db
    .selectFrom('push_subscription as p')
    .leftJoin('user_session as s', 's.session_id', 'p.session_id')
    .selectAll('p')
    .where('p.tenant', '=', tenant)
    .where('p.target', 'in', targets)
    .where((eb) =>
      eb.or([
        eb('p.session_id', 'is', null),
        eb.and([eb('s.expires_ms', '>', nowMs), eb('s.seen_ms', '>', nowMs - IDLE_MS)]),
      ]),
    )
    .orderBy('p.subscription_id')
    .limit(limit)
    .execute()
}

/** A page of the subscriptions of a tenant with the users of their sessions, oldest first. */
export function listSubscriptions(
  db: Db,
  tenant: string,
  { storeIds, after = '', limit }: { storeIds: readonly string[] | null; after?: string | undefined; limit: number },
) {
  let query = db
    .selectFrom('push_subscription as p')
    .leftJoin('user_session as s', 's.session_id', 'p.session_id')
    .selectAll('p')
    .select('s.user_id as console_user_id')
    .where('p.tenant', '=', tenant)
    .where('p.subscription_id', '>', after)
  if (storeIds !== null) query = query.where('p.store_id', 'in', [...storeIds])
  return query.orderBy('p.subscription_id').limit(limit).execute()
}

/** Subscriptions of these targets. */
export function subscriptionsOf(
  db: Db,
  tenant: string,
  targets: readonly string[],
  limit: number,
): Promise<Row<'push_subscription'>[]> {
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
export function subscriptionsAt(db: Db, tenant: string, hash: string): Promise<Row<'push_subscription'>[]> {
  return db
    .selectFrom('push_subscription')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('endpoint_hash', '=', hash)
    .execute()
}

/** True if the tenant has at least this many subscriptions. */
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

/** Finds a subscription. */
export function findSubscription(db: Db, subscriptionId: string): Promise<Row<'push_subscription'> | undefined> {
  return db.selectFrom('push_subscription').selectAll().where('subscription_id', '=', subscriptionId).executeTakeFirst()
}

/** Deletes a subscription with its queued notices. */
export async function deleteSubscription(db: Db, subscriptionId: string): Promise<void> {
  await db.deleteFrom('push_subscription').where('subscription_id', '=', subscriptionId).execute()
}

/** True if the session of a console user has notices about alarms. */
export async function hasSessionSubscription(db: Db, tenant: string, sessionId: string): Promise<boolean> {
  const row = await db
    .selectFrom('push_subscription')
    .select('subscription_id')
    .where('session_id', '=', sessionId)
    .where('tenant', '=', tenant)
    .where('target', '=', alarmTarget(sessionId))
    .executeTakeFirst()
  return row !== undefined
}

/** Ends the notices about alarms of a session, also those that are queued. */
export async function deleteSessionSubscriptions(db: Db, tenant: string, sessionId: string): Promise<void> {
  await db
    .deleteFrom('push_subscription')
    .where('session_id', '=', sessionId)
    .where('tenant', '=', tenant)
    .where('target', '=', alarmTarget(sessionId))
    .execute()
}
