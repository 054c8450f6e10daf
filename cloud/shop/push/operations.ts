import { z } from 'zod'
import { keyCaller, rolesFrom } from '../../platform/foundation/caller.ts'
import { invalid } from '../../platform/foundation/failure.ts'
import { definedFields, Id, iso, Limit, Success, text } from '../../platform/operations/fields.ts'
import { operation } from '../../platform/operations/operation.ts'
import { cursorField, toPage } from '../../platform/operations/paging.ts'
import { checkKeys, endpointOf, ownSubscription, registerEndpoint, noticeTarget } from './register.ts'
import { deleteSubscription, isAboutAlarms, listSubscriptions, openTarget } from './subscriptions.ts'

const DEFAULT_PAGE = 100
const ENDPOINT_MAX = 2_048
const Kind = z.enum(['web', 'https'])
const Key = z.string().regex(/^[A-Za-z0-9_-]{1,128}={0,2}$/, 'must be base64url')
/** Address of a push service, or of the merchant. */
export const EndpointField = z.string().max(ENDPOINT_MAX)
/** Keys of a browser's PushSubscription. */
export const KeysField = z.strictObject({ p256dh: Key, auth: Key })
const SessionId = Id.optional().describe('With a publishable key: a session that `checkIn` opened with a secret key.')

export const fetchPushKey = operation({
  name: 'fetchPushKey',
  area: 'click and collect',
  minimumPackage: 'GO',
  roles: rolesFrom('associate'),
  summary: 'Returns the public key with which a browser subscribes to push notifications.',
  description: 'It is the `applicationServerKey` of `pushManager.subscribe` (VAPID, RFC 8292), and never changes.',
  callers: ['secret', 'publishable'],
  changes: false,
  request: z.strictObject({}),
  response: z.strictObject({ ...Success, publicKey: z.string() }),
  example: {},
  answer: {
    success: true,
    publicKey: 'BNcRdreALRFXTkOOUHK1EtK2wtaz5Ry4YfYCA_0QTpQtUbVlUls0VJXg7A8u-Ts1XbjhazAkj7I99e8QcYP7DkM',
  },
  run(call) {
    return Promise.resolve({ success: true as const, publicKey: call.services.push.vapid.publicKey })
  },
})

export const registerPushSubscription = operation({
  name: 'registerPushSubscription',
  area: 'click and collect',
  minimumPackage: 'GO',
  roles: rolesFrom('associate'),
  summary: 'Sends push notifications about orders to a browser, or to an HTTPS endpoint of your own.',
  description:
    '`kind: "web"` takes `endpoint` and `keys` of the browser’s PushSubscription; `kind: "https"` an endpoint of yours, whose `secret` appears in this answer only. ' +
    'Send `userId` for notices to this customer, or `storeId` for notices to the staff of the store. An https endpoint without both gets all notices. ' +
    'Users of the console register browsers, and the subscription ends with their session. Endpoints of servers need a key or the role admin. ' +
    'A repeated registration renews the subscription. With test keys, the cloud sends nothing and logs `push notice`.',
  callers: ['secret', 'publishable'],
  refusals: ['session_without_customer', 'too_many_push_subscriptions'],
  secretResponse: true,
  changes: true,
  request: z.strictObject({
    kind: Kind,
    endpoint: EndpointField,
    keys: KeysField.optional(),
    userId: text(128).optional(),
    storeId: Id.optional(),
    sessionId: SessionId,
  }),
  response: z.strictObject({
    ...Success,
    subscriptionId: z.string(),
    kind: Kind,
    endpoint: z.string(),
    userId: z.string().optional(),
    storeId: z.string().optional(),
    secret: z.string().optional().describe('Only for https endpoints: signs each notice like a webhook.'),
    createdAt: z.string(),
  }),
  example: {
    kind: 'web',
    userId: 'shopper-17',
    endpoint: 'https://updates.push.services.mozilla.com/wpush/v2/gAAAAABk',
    keys: {
      p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
      auth: 'BTBZMqHH6r4Tts7J_aSIgg',
    },
  },
  async run(call, { kind, endpoint: address, keys, ...named }) {
    const target = await noticeTarget(call, kind, named)
    const endpoint = endpointOf(call, address)
    if (kind === 'web' && !keys) throw invalid('keys', 'is missing: send keys of the PushSubscription', 'missing')
    if (kind === 'https' && keys) throw invalid('keys', 'is for browsers: leave it out with kind https')
    if (keys) checkKeys(keys)
    const { row, secret } = await registerEndpoint(call, target, { kind, endpoint, keys })
    return {
      success: true as const,
      subscriptionId: row.subscription_id,
      kind,
      endpoint,
      ...(row.user_id !== null && { userId: row.user_id }),
      ...(row.store_id !== null && { storeId: row.store_id }),
      ...(secret !== undefined && { secret }),
      createdAt: iso(row.created_ms),
    }
  },
})

export const fetchPushSubscriptions = operation({
  name: 'fetchPushSubscriptions',
  area: 'click and collect',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('admin'),
  summary: 'Lists the push subscriptions of browsers and of endpoints of your own, oldest first.',
  description: 'Endpoints of browsers are left out, because they are enough to send to the browser.',
  changes: false,
  request: z.strictObject({ limit: Limit.optional(), cursor: cursorField('psu').optional() }),
  response: z.strictObject({
    ...Success,
    subscriptions: z.array(
      z.strictObject({
        subscriptionId: z.string(),
        kind: Kind,
        notices: z.enum(['orders', 'alarms']),
        endpoint: z.string().optional().describe('Only of kind https.'),
        userId: z.string().optional().describe('Customer.'),
        storeId: z.string().optional(),
        consoleUserId: z.string().optional().describe('User of the console with whose session it ends.'),
        createdAt: z.string(),
      }),
    ),
    nextCursor: z.string().optional(),
  }),
  example: {},
  async run(call, { limit = DEFAULT_PAGE, cursor }) {
    const { tenant, storeIds } = keyCaller(call.caller)
    const rows = await listSubscriptions(call.db, tenant, { storeIds, after: cursor, limit: limit + 1 })
    const { items, nextCursor } = toPage(rows, (row) => row.subscription_id, { limit })
    const { sealer } = call.services.authority
    return {
      success: true as const,
      subscriptions: items.map((row) => ({
        subscriptionId: row.subscription_id,
        kind: Kind.parse(row.kind),
        notices: isAboutAlarms(row) ? ('alarms' as const) : ('orders' as const),
        ...definedFields({
          endpoint: row.kind === 'https' ? openTarget(sealer, row).endpoint : null,
          userId: row.user_id,
          storeId: row.store_id,
          consoleUserId: row.console_user_id,
        }),
        createdAt: iso(row.created_ms),
      })),
      ...(nextCursor !== undefined && { nextCursor }),
    }
  },
})

export const removePushSubscription = operation({
  name: 'removePushSubscription',
  area: 'click and collect',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('associate'),
  summary: 'Ends a push subscription and discards its queued notices.',
  callers: ['secret', 'publishable'],
  refusals: ['session_without_customer'],
  changes: true,
  request: z.strictObject({ subscriptionId: Id, sessionId: SessionId }),
  response: z.strictObject({ ...Success, subscriptionId: z.string() }),
  example: { subscriptionId: 'psu_01KANX78K0V2X4Z6B8D0F2H4K6' },
  async run(call, { subscriptionId, sessionId }) {
    const row = await ownSubscription(call, subscriptionId, sessionId)
    await deleteSubscription(call.db, row.subscription_id)
    call.changed(row.subscription_id)
    return { success: true as const, subscriptionId: row.subscription_id }
  },
})
