import type { ProtectionEvent } from '../../../policy/protection-events.ts'
import { GATE_ALARMS } from '../../../policy/vocabulary.ts'
import { userCaller, rolesFrom } from '../../platform/foundation/caller.ts'
import { z } from 'zod'
import { Success } from '../../platform/operations/fields.ts'
import { operation } from '../../platform/operations/operation.ts'
import { EndpointField, KeysField } from './operations.ts'
import { checkKeys, endpointOf, registerEndpoint } from './register.ts'
import { notifyStaff, type NoticeScope, type StaffNotice } from './staff-notices.ts'
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

/** Maximum age of an event, ms. An agent that was offline reports older events, which ring no phone. */
const RECENT_MS = 15 * 60_000
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
