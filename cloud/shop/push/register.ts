import { ECDH } from 'node:crypto'
import { newId } from '../../../policy/ids.ts'
import { keyCaller, maySee, type UserCaller, isRoleAtLeast } from '../../platform/foundation/caller.ts'
import { Failure, invalid, notFound, precondition } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import { checkTarget } from '../../platform/outgoing/outgoing-http.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { sessionOfCaller } from '../purchases/queries.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { targetRules } from '../../platform/webhooks/register.ts'
import { newSecret } from '../../platform/webhooks/secret.ts'
import {
  alarmTarget,
  deleteSubscription,
  endpointHash,
  findSubscription,
  hasSubscriptions,
  isAboutAlarms,
  sealTarget,
  subscriptionsAt,
  subscriptionsOf,
  type PushTarget,
} from './subscriptions.ts'

/** Maximum number of subscriptions of one target, and of one account and mode. */
const PER_TARGET = 20
const PER_TENANT = 100_000

const P256DH_BYTES = 65
const AUTH_BYTES = 16

/** Fields of a request that name the target of notices. At most one is allowed. */
interface NoticeTargetInput {
  userId?: string | undefined
  storeId?: string | undefined
  sessionId?: string | undefined
}

/**
 * Target of notices: a customer, a store, the alarms of a console user, or none of them for the whole account. With
 * `sessionId` the subscription belongs to this session of a console user.
 */
interface NoticeTarget {
  userId: string | null
  storeId: string | null
  sessionId?: string | undefined
  isForAlarms?: boolean
}

/**
 * Resolves the target that the caller may register. A publishable key may register only the customer of its session.
 */
export async function noticeTarget(
  call: Call,
  kind: string,
  { userId, storeId, sessionId }: NoticeTargetInput,
): Promise<NoticeTarget> {
  const caller = keyCaller(call.caller)
  if (caller.kind === 'user' && kind === 'https') assertMayNameServers(caller)
  const own = caller.kind === 'user' && kind === 'web' ? { sessionId: caller.sessionId } : {}
  if (caller.kind === 'publishable' && sessionId === undefined) throw invalid('sessionId', 'is missing', 'missing')
  if ([userId, storeId, sessionId].filter((name) => name !== undefined).length > 1)
    throw invalid(
      userId === undefined ? 'storeId' : 'userId',
      'is one too many: send one of userId, storeId and sessionId',
    )
  if (sessionId !== undefined) {
    if (kind === 'https') throw invalid('sessionId', 'is for browsers: send userId or storeId with kind https')
    return { userId: await userOfSession(call, sessionId), storeId: null, ...own }
  }
  if (storeId !== undefined) return { userId: null, storeId: (await ownStore(call, storeId)).store_id, ...own }
  if (caller.storeIds !== null)
    throw new Failure('permission-denied', 'this key is bound to stores: send storeId', {
      reason: 'key_bound_to_stores',
    })
  if (userId === undefined && kind === 'web') throw invalid('userId', 'is missing: send userId or storeId', 'missing')
  return { userId: userId ?? null, storeId: null, ...own }
}

/** Throws 403 unless the user may also register webhooks: an endpoint of a server gets the data for good. */
function assertMayNameServers({ role }: UserCaller): void {
  if (!isRoleAtLeast(role, 'admin'))
    throw new Failure('permission-denied', 'only a user with the role admin or higher may name an https endpoint', {
      reason: 'role_too_low',
    })
}

/**
 * The customer of a session. Throws 409 if the userId was not set with a secret key, because callers with a publishable
 * key could send any userId.
 */
async function userOfSession(call: Call, sessionId: string): Promise<string> {
  const session = await sessionOfCaller(call, sessionId)
  if (session.user_id === null || session.vouched !== 1)
    throw precondition(
      'session_without_customer',
      'this session names no customer that can be trusted: call checkIn with a secret key and userId, or register with a secret key',
    )
  return session.user_id
}

/** Normalizes an endpoint for comparison. Throws 400 if the cloud does not send to this endpoint. */
export function endpointOf(call: Call, text: string): string {
  const checked = checkTarget(text, targetRules(keyCaller(call.caller).tenant, call.services.config))
  if ('refusal' in checked) throw invalid('endpoint', checked.refusal, 'url_refused')
  checked.url.hash = ''
  return checked.url.href
}

/** Validates the keys of a browser. Throws 400. */
export function checkKeys({ p256dh, auth }: { p256dh: string; auth: string }): void {
  if (Buffer.from(auth, 'base64url').length !== AUTH_BYTES)
    throw invalid('keys.auth', `must be ${AUTH_BYTES} bytes in base64url, as PushSubscription.toJSON() has it`)
  try {
    const point = Buffer.from(p256dh, 'base64url')
    if (point.length !== P256DH_BYTES) throw new Error('not an uncompressed point')
    ECDH.convertKey(point, 'prime256v1')
  } catch {
    throw invalid(
      'keys.p256dh',
      `must be a public key on P-256 (${P256DH_BYTES} bytes) in base64url, as PushSubscription.toJSON() has it`,
    )
  }
}

/** Registers or renews an endpoint. The endpoint of a browser keeps only the last registered target. */
export async function registerEndpoint(
  call: Call,
  noticesFor: NoticeTarget,
  wanted: { kind: 'web' | 'https'; endpoint: string; keys?: { p256dh: string; auth: string } | undefined },
): Promise<{ row: Row<'push_subscription'>; secret: string | undefined }> {
  const { db, nowMs, services } = call
  const { tenant } = keyCaller(call.caller)
  const target = targetOf(noticesFor)
  const hash = endpointHash(wanted.endpoint)
  const registered = await subscriptionsAt(db, tenant, hash)
  const known = registered.find((row) => row.target === target)
  for (const other of registered)
    if (other !== known && other.kind === 'web') await deleteSubscription(db, other.subscription_id)
  if (!known) await assertRoom(call, tenant, target)
  const secret = wanted.kind === 'https' ? newSecret(services.platform.random) : undefined
  const id = known?.subscription_id ?? newId('psu', services.platform)
  const pushTarget: PushTarget = {
    endpoint: wanted.endpoint,
    ...(wanted.keys && { keys: wanted.keys }),
    ...(secret !== undefined && { secret }),
  }
  const row: Row<'push_subscription'> = {
    subscription_id: id,
    tenant,
    kind: wanted.kind,
    target,
    user_id: noticesFor.userId,
    store_id: noticesFor.storeId,
    session_id: noticesFor.sessionId ?? null,
    endpoint_hash: hash,
    sealed: sealTarget(services.authority.sealer, id, pushTarget),
    failed_in_row: 0,
    created_ms: known?.created_ms ?? nowMs,
    updated_ms: nowMs,
  }
  await db
    .insertInto('push_subscription')
    .values(row)
    .onConflict((c) => c.column('subscription_id').doUpdateSet(row))
    .execute()
  call.changed(id)
  return { row, secret }
}

function targetOf({ userId, storeId, sessionId, isForAlarms = false }: NoticeTarget): string {
  if (isForAlarms) return alarmTarget(sessionId ?? '')
  if (userId !== null) return `user:${userId}`
  return storeId === null ? 'all' : `store:${storeId}`
}

async function assertRoom({ db }: Call, tenant: string, target: string): Promise<void> {
  if ((await subscriptionsOf(db, tenant, [target], PER_TARGET)).length >= PER_TARGET)
    throw precondition(
      'too_many_push_subscriptions',
      `a customer or store has at most ${PER_TARGET} push subscriptions: remove one with removePushSubscription`,
    )
  if (await hasSubscriptions(db, tenant, PER_TENANT))
    throw precondition(
      'too_many_push_subscriptions',
      `an account has at most ${PER_TENANT} push subscriptions: remove some with removePushSubscription`,
    )
}

/** Finds a subscription of the caller. Throws 404. */
export async function ownSubscription(
  call: Call,
  subscriptionId: string,
  sessionId: string | undefined,
): Promise<Row<'push_subscription'>> {
  const caller = keyCaller(call.caller)
  if (caller.kind === 'publishable' && sessionId === undefined) throw invalid('sessionId', 'is missing', 'missing')
  const userId = sessionId === undefined ? undefined : await userOfSession(call, sessionId)
  const row = await findSubscription(call.db, subscriptionId)
  if (!row || row.tenant !== caller.tenant || isAboutAlarms(row)) throw notFound('push subscription')
  if (caller.kind === 'user' && !isRoleAtLeast(caller.role, 'admin')) {
    if (row.session_id !== caller.sessionId) throw notFound('push subscription')
    return row
  }
  const isOwn =
    userId !== undefined
      ? row.user_id === userId
      : row.store_id === null
        ? caller.storeIds === null
        : maySee(caller, { store_id: row.store_id, tenant: row.tenant })
  if (!isOwn) throw notFound('push subscription')
  return row
}
