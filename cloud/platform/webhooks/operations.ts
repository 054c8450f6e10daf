import { z } from 'zod'
import { knownCaller, rolesFrom } from '../foundation/caller.ts'
import { invalid } from '../foundation/failure.ts'
import { Id, Limit, Offset, QueryNumber, Success, assertUnchanged } from '../operations/fields.ts'
import { legacyForm, operation, type Call } from '../operations/operation.ts'
import { cursorField, pageLimits, slicePage } from '../operations/paging.ts'
import { ownStore } from '../stores/own-store.ts'
import type { Row } from '../persistence/schema.ts'
import { changeWebhook, dropPending, readEvents, writeEvents } from './queries.ts'
import {
  assertUrlUnused,
  DEFAULT_OVERLAP_HOURS,
  ownWebhook,
  ownWebhooks,
  register,
  rolledSecret,
  urlKey,
  WEBHOOKS_LIMIT,
  type RegisteredWebhook,
} from './register.ts'
import { Events, Secret, TargetUrl, toWebhook, Webhook, CreatedWebhook } from './schema.ts'
import { newSecret, sealSecret, secretWarnings } from './secret.ts'

/** Fields that only the system sets. Callers may send them back (ADR requests). States and times may have changed since. */
const SYSTEM_FIELDS = Webhook.pick({
  storeId: true,
  disabledReason: true,
  disabledAt: true,
  failingSince: true,
  missedAt: true,
  oldSecretUntil: true,
  createdAt: true,
  updatedAt: true,
}).partial().shape

const OVERLAP_HOURS_MAX = 168
const EXAMPLE_ID = 'whk_01KANX78K0V2X4Z6B8D0F2H4K6'

function made(call: Call, { webhook, events, secret, warnings }: RegisteredWebhook): z.input<typeof CreatedWebhook> {
  return {
    success: true,
    ...toWebhook(webhook, events, call.nowMs),
    ...(secret !== undefined && { secret }),
    ...(warnings.length > 0 && { warnings }),
  }
}

async function shown(call: Call, webhook: Row<'webhook'>, secret?: string) {
  const warnings = secretWarnings(secret)
  const events = await readEvents(call.db, [webhook.webhook_id])
  return {
    success: true as const,
    ...toWebhook(webhook, events.get(webhook.webhook_id) ?? [], call.nowMs),
    ...(warnings.length > 0 && { warnings }),
  }
}

async function listed(call: Call, storeId: string | undefined) {
  if (storeId !== undefined) await ownStore(call, storeId)
  const webhooks = await ownWebhooks(call, storeId)
  const events = await readEvents(
    call.db,
    webhooks.map((w) => w.webhook_id),
  )
  return webhooks.map((webhook) => toWebhook(webhook, events.get(webhook.webhook_id) ?? [], call.nowMs))
}

export const registerWebhook = operation({
  name: 'registerWebhook',
  area: 'webhooks',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('admin'),
  summary: 'Registers a URL that receives events.',
  description:
    'With `storeId` it receives events of that store, otherwise of the account. If the URL is already registered, the events are added and the id stays. Only this response shows the secret.',
  refusals: ['too_many_webhooks'],
  changes: true,
  secretResponse: true,
  request: z.strictObject({ url: TargetUrl, events: Events, storeId: Id.optional(), secret: Secret.optional() }),
  response: CreatedWebhook,
  example: { url: 'https://shop.example/untag', events: ['checkout.completed', 'securityTag.deactivated'] },
  async run(call, { url, events, storeId, secret }) {
    const caller = knownCaller(call.caller)
    const isBound = caller.kind !== 'agent' && caller.storeIds !== null
    if (storeId === undefined && isBound)
      throw invalid('storeId', 'is missing: this key is bound to stores, so send one of them', 'missing')
    const store = storeId === undefined ? null : await ownStore(call, storeId)
    return made(call, await register(call, { store, url, events, secret }))
  },
})

export const getLoyaltyWebhookEvents = operation({
  name: 'getLoyaltyWebhookEvents',
  area: 'webhooks',
  minimumPackage: 'GO',
  roles: rolesFrom('admin'),
  summary: 'Registers a webhook for events of a store; with GET, lists webhooks.',
  description:
    'Like `registerWebhook`: if the URL is already registered for the store, the events are added and the id stays.',
  refusals: ['too_many_webhooks'],
  changes: true,
  secretResponse: true,
  request: z.strictObject({ storeId: Id, url: TargetUrl, events: Events, secret: Secret }),
  response: CreatedWebhook,
  example: {
    storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    url: 'https://shop.example/untag',
    events: ['loyalty.points_earned'],
    secret: 'sixteen-characters-or-more',
  },
  get: legacyForm({
    request: z.strictObject({
      storeId: Id.optional(),
      limit: QueryNumber.pipe(Limit).optional(),
      offset: QueryNumber.pipe(Offset).optional(),
      cursor: cursorField('whk').optional(),
    }),
    response: z.strictObject({ ...Success, data: z.array(Webhook), total: z.int(), nextCursor: z.string().optional() }),
    async run(call, { storeId, ...paging }) {
      const all = await listed(call, storeId)
      const { items, ...more } = slicePage(all, (webhook) => webhook.webhookId, pageLimits(paging, WEBHOOKS_LIMIT))
      return { success: true as const, data: items, total: all.length, ...more }
    },
  }),
  async run(call, { storeId, ...wanted }) {
    return made(call, await register(call, { store: await ownStore(call, storeId), ...wanted }))
  },
})

export const fetchWebhooks = operation({
  name: 'fetchWebhooks',
  area: 'webhooks',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('admin'),
  summary: 'Lists the webhooks, all or those of one store.',
  changes: false,
  request: z.strictObject({ storeId: Id.optional() }),
  response: z.strictObject({ ...Success, webhooks: z.array(Webhook), total: z.int() }),
  example: {},
  async run(call, { storeId }) {
    const webhooks = await listed(call, storeId)
    return { success: true as const, webhooks, total: webhooks.length }
  },
})

export const updateWebhook = operation({
  name: 'updateWebhook',
  area: 'webhooks',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('admin'),
  summary: 'Changes the URL, the events or the secret of a webhook, or disables or enables it.',
  description:
    'Disabling a webhook fails its pending deliveries; `redeliverWebhook` sends them later. `rollWebhookSecret` changes the secret without interruption.',
  changes: true,
  request: z.strictObject({
    webhookId: Id,
    url: TargetUrl.optional(),
    events: Events.optional(),
    enabled: z.boolean().optional(),
    secret: Secret.optional(),
    ...SYSTEM_FIELDS,
  }),
  response: Webhook.extend({ ...Success, warnings: z.array(z.string()).optional() }),
  example: { webhookId: EXAMPLE_ID, events: ['*'] },
  async run(call, { webhookId, url, events, enabled, secret, storeId, createdAt }) {
    const { db, nowMs, services } = call
    const webhook = await ownWebhook(call, webhookId)
    assertUnchanged({ storeId, createdAt }, toWebhook(webhook, [], nowMs))
    const change: Partial<Row<'webhook'>> = { updated_ms: nowMs }
    if (url !== undefined && url !== webhook.url) {
      const key = urlKey(call, url)
      await assertUrlUnused(call, webhook, key)
      Object.assign(change, { url, url_key: key, failed_in_row: 0, failing_since_ms: null })
    }
    if (enabled === true && webhook.enabled === 0)
      Object.assign(change, {
        enabled: 1,
        disabled_reason: null,
        disabled_ms: null,
        failed_in_row: 0,
        failing_since_ms: null,
      })
    if (enabled === false && webhook.enabled === 1) {
      Object.assign(change, { enabled: 0, disabled_reason: 'switched_off', disabled_ms: nowMs })
      await dropPending(db, webhookId, nowMs)
    }
    if (secret !== undefined)
      Object.assign(change, {
        secret: sealSecret(services.authority.sealer, webhookId, secret),
        old_secret: null,
        old_until_ms: null,
      })
    if (events !== undefined) await writeEvents(db, webhook, events)
    call.changed(webhookId)
    return shown(call, await changeWebhook(db, webhookId, change), secret)
  },
})

export const deleteWebhook = operation({
  name: 'deleteWebhook',
  area: 'webhooks',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('admin'),
  summary: 'Deletes a webhook. The cloud sends nothing more to it.',
  changes: true,
  request: z.strictObject({ webhookId: Id }),
  response: z.strictObject({ ...Success, webhookId: z.string() }),
  example: { webhookId: EXAMPLE_ID },
  async run(call, { webhookId }) {
    await ownWebhook(call, webhookId)
    await dropPending(call.db, webhookId, call.nowMs)
    await call.db.deleteFrom('webhook_subscription').where('webhook_id', '=', webhookId).execute()
    await call.db.deleteFrom('webhook').where('webhook_id', '=', webhookId).execute()
    call.changed(webhookId)
    return { success: true as const, webhookId }
  },
})

export const rollWebhookSecret = operation({
  name: 'rollWebhookSecret',
  area: 'webhooks',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('admin'),
  summary: 'Replaces the secret of a webhook. The previous one also signs until the overlap ends.',
  description: `The overlap lasts ${DEFAULT_OVERLAP_HOURS} hours or \`overlapHours\` (0: no overlap). During it, \`webhook-signature\` contains a signature with each secret, and \`X-Untag-Signature\` uses the old secret.`,
  changes: true,
  secretResponse: true,
  request: z.strictObject({
    webhookId: Id,
    overlapHours: z.number().min(0).max(OVERLAP_HOURS_MAX).optional(),
    secret: Secret.optional(),
  }),
  response: CreatedWebhook,
  example: { webhookId: EXAMPLE_ID, overlapHours: 24 },
  async run(call, { webhookId, overlapHours = DEFAULT_OVERLAP_HOURS, secret }) {
    const known = await ownWebhook(call, webhookId)
    const next = secret ?? newSecret(call.services.platform.random)
    const webhook = await changeWebhook(call.db, webhookId, {
      ...rolledSecret(call, known, next, overlapHours),
      updated_ms: call.nowMs,
    })
    call.changed(webhookId)
    return { ...(await shown(call, webhook, secret)), ...(secret === undefined && { secret: next }) }
  },
})
