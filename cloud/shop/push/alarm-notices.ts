import { sql } from 'kysely'
import type { ProtectionEvent } from '../../../policy/protection-events.ts'
import { GATE_ALARMS } from '../../../policy/vocabulary.ts'
import { isRoleAtLeast, type Role, userCaller, rolesFrom } from '../../platform/foundation/caller.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { IDLE_MS, mayUseLive } from '../../platform/users/sessions.ts'
import { roleOf, storesOf } from '../../platform/users/user-queries.ts'
import { isQueueFull, topicOf } from './queue.ts'
import { z } from 'zod'
import { Success } from '../../platform/operations/fields.ts'
import { operation } from '../../platform/operations/operation.ts'
import { EndpointField, KeysField } from './operations.ts'
import { checkKeys, endpointOf, registerEndpoint } from './register.ts'
import { deleteSessionSubscriptions, hasSessionSubscription } from './subscriptions.ts'

const ROLES = rolesFrom('associate')

export const fetchAlarmNotices = operation({
  name: 'fetchAlarmNotices',
  area: 'protection',
  minimumPackage: 'DISCOVER',
  callers: [],
  roles: ROLES,
  summary: 'Returns whether this session gets push notices about alarms, and the public key to subscribe with.',
  changes: false,
  request: z.strictObject({}),
  response: z.strictObject({
    ...Success,
    isOn: z.boolean(),
    publicKey: z.string().describe('`applicationServerKey` of `pushManager.subscribe` (VAPID, RFC 8292).'),
  }),
  example: {},
  async run(call) {
    const { tenant, sessionId } = userCaller(call.caller)
    const isOn = await hasSessionSubscription(call.db, tenant, sessionId)
    return { success: true as const, isOn, publicKey: call.services.push.vapid.publicKey }
  },
})

export const registerAlarmNotices = operation({
  name: 'registerAlarmNotices',
  area: 'protection',
  minimumPackage: 'GROW',
  callers: [],
  roles: ROLES,
  summary: 'Sends push notices about alarms to the browser of this session.',
  description:
    'Alarms of gates reach associates and higher roles; other exceptions reach managers and higher roles. Each user gets the notices of the own stores, in the mode of the call. ' +
    'The notices end with the session, with `removeAlarmNotices`, and when the push service no longer knows the browser.',
  refusals: ['too_many_push_subscriptions'],
  changes: true,
  request: z.strictObject({ endpoint: EndpointField, keys: KeysField }),
  response: z.strictObject({ ...Success, isOn: z.literal(true) }),
  example: {
    endpoint: 'https://updates.push.services.mozilla.com/wpush/v2/gAAAAABk',
    keys: {
      p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
      auth: 'BTBZMqHH6r4Tts7J_aSIgg',
    },
  },
  async run(call, { endpoint: address, keys }) {
    const { tenant, sessionId } = userCaller(call.caller)
    const endpoint = endpointOf(call, address)
    checkKeys(keys)
    await deleteSessionSubscriptions(call.db, tenant, sessionId)
    await registerEndpoint(
      call,
      { userId: null, storeId: null, sessionId, isForAlarms: true },
      { kind: 'web', endpoint, keys },
    )
    return { success: true as const, isOn: true as const }
  },
})

export const removeAlarmNotices = operation({
  name: 'removeAlarmNotices',
  area: 'protection',
  minimumPackage: 'DISCOVER',
  callers: [],
  roles: ROLES,
  summary: 'Ends the push notices of this session. Does nothing if there are none.',
  changes: true,
  request: z.strictObject({}),
  response: z.strictObject({ ...Success, isOn: z.literal(false) }),
  example: {},
  async run(call) {
    const { tenant, sessionId } = userCaller(call.caller)
    await deleteSessionSubscriptions(call.db, tenant, sessionId)
    call.changed(sessionId)
    return { success: true as const, isOn: false as const }
  },
})

/** Life of a notice, ms. Later the person at the door cannot act any more. */
const NOTICE_LIFE_MS = 30 * 60_000
/** Maximum age of an event, ms. An agent that was offline reports older events, which ring no phone. */
const RECENT_MS = 15 * 60_000
/** Maximum number of browsers that get one notice. */
const RECEIVERS_LIMIT = 200
/** Maximum number of subscribed browsers that the cloud reads for one notice. */
const BROWSERS_LIMIT = 5_000

/** Reason of a notice about a colleague who needs help. */
export const HELP_AT_ALARM = 'help_at_alarm'

/** Content of a notice. The service worker (console/browser/worker.ts) turns it into text. */
interface AlarmNotice {
  readonly id: string
  /** Kind of the exception, such as `gate_alarm`, or `help_at_alarm`. */
  readonly reason: string
  readonly storeName: string
  /** Page of the console to open. */
  readonly path: string
  /** A notice with the same tag replaces this one on the phone. */
  readonly tag: string
}

/** What a notice to staff is about. */
interface StaffNotice {
  /** The same id rings each browser once. */
  readonly id: string
  /** Chooses the text: a kind of exception, or `help_at_alarm`. */
  readonly reason: string
  readonly storeId: string
  /** Page of the console to open, below `/console/`. */
  readonly page: 'alarms' | 'exceptions' | 'help'
  /** Lowest role that gets it. */
  readonly lowest: Role
  /** User who gets none, because that user caused it. */
  readonly except?: string
}

interface NoticeScope {
  readonly db: Db
  readonly tenant: string
  readonly nowMs: number
}

/**
 * Enqueues notices for users of the console about exceptions, in the transaction of the events. Alarms of gates reach
 * associates and higher roles, other exceptions managers and higher roles, each for their own stores.
 */
export async function enqueueAlarmNotices(scope: NoticeScope, events: readonly ProtectionEvent[]): Promise<void> {
  const notices = events.flatMap(({ type, occurredAt, eventId, reason = '', storeId }): StaffNotice[] => {
    const isRecent = Math.abs(scope.nowMs - Date.parse(occurredAt)) <= RECENT_MS
    if (type !== 'protection.exception.raised' || !isRecent) return []
    const about = { id: eventId, reason, storeId }
    return [
      GATE_ALARMS.has(reason)
        ? { ...about, page: 'alarms', lowest: 'associate' }
        : { ...about, page: 'exceptions', lowest: 'manager' },
    ]
  })
  await notifyStaff(scope, notices)
}

/** Enqueues notices for the users who may see their stores. Reads the browsers once for all notices. */
export async function notifyStaff(scope: NoticeScope, notices: readonly StaffNotice[]): Promise<void> {
  if (notices.length === 0) return
  const { db, tenant, nowMs } = scope
  const browsers = await browsersOf(db, tenant, nowMs)
  if (browsers.length === 0 || (await isQueueFull(db, tenant))) return
  for (const notice of notices) {
    const receivers = browsers.filter((user) => {
      const stores = storesOf(user)
      const mayRead = isRoleAtLeast(roleOf(user), notice.lowest) && (stores?.includes(notice.storeId) ?? true)
      return mayRead && user.user_id !== notice.except
    })
    if (receivers.length > 0) await enqueue(scope, notice, receivers.slice(0, RECEIVERS_LIMIT))
  }
}

/** Browsers with an active session of a user who may see this tenant. */
async function browsersOf(db: Db, tenant: string, nowMs: number) {
  const rows = await db
    .selectFrom('push_subscription as p')
    .innerJoin('user_session as s', 's.session_id', 'p.session_id')
    .innerJoin('console_user as u', 'u.user_id', 's.user_id')
    .select(['p.subscription_id', 's.second_factor', 'u.user_id', 'u.role', 'u.store_ids', 'u.sandbox_only'])
    .where('p.tenant', '=', tenant)
    .where('p.target', '=', sql<string>`'session:' || p.session_id`)
    .where('s.state', '=', 'active')
    .where('s.expires_ms', '>', nowMs)
    .where('s.seen_ms', '>', nowMs - IDLE_MS)
    .orderBy('p.subscription_id')
    .limit(BROWSERS_LIMIT)
    .execute()
  return tenant.endsWith('.live') ? rows.filter((row) => mayUseLive(row, row.second_factor === 1)) : rows
}

async function enqueue(
  { db, tenant, nowMs }: NoticeScope,
  { id, reason, storeId, page }: StaffNotice,
  receivers: readonly { subscription_id: string }[],
): Promise<void> {
  const store = await db.selectFrom('store').select('trading_name').where('store_id', '=', storeId).executeTakeFirst()
  const mode = tenant.endsWith('.live') ? 'live' : 'test'
  const tag = topicOf(`${storeId}/${page === 'alarms' ? 'alarm' : reason}`)
  const notice: AlarmNotice = {
    id,
    reason,
    storeName: store?.trading_name ?? '',
    path: `/console/${page}?mode=${mode}&store=${storeId}`,
    tag,
  }
  const body = JSON.stringify(notice)
  const rows = receivers.map(({ subscription_id }): Row<'push_delivery'> => ({
    // An event that is reported again rings again only after its first notice was sent.
    delivery_id: `pdl_${topicOf(`${id}/${subscription_id}`)}`,
    tenant,
    subscription_id,
    user_id: null,
    body,
    urgency: 'high',
    topic: tag,
    attempts: 0,
    due_ms: nowMs,
    lease_id: null,
    expires_ms: nowMs + NOTICE_LIFE_MS,
  }))
  await db
    .insertInto('push_delivery')
    .values(rows)
    .onConflict((c) => c.column('delivery_id').doNothing())
    .execute()
}
