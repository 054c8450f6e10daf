import { z } from 'zod'
import { iso, definedFields, Success } from '../operations/fields.ts'
import type { Row } from '../persistence/schema.ts'
import { EVENT_TYPES } from './event-types.ts'
import { EVERY_EVENT } from './queries.ts'
import { isSecret, SECRET_MAX, SECRET_RULE } from './secret.ts'

export const Events = z
  .array(z.enum([EVERY_EVENT, ...EVENT_TYPES.keys()]))
  .min(1)
  .max(EVENT_TYPES.size + 1)
  .describe('Names of events, or `*` for all events.')
/** Maximum length of a URL, also after normalization, because database indexes limit it. */
export const URL_LIMIT = 2_048
export const TargetUrl = z.string().min(1).max(URL_LIMIT).describe('Public https URL that receives the events.')
export const Secret = z
  .string()
  .min(1)
  .max(SECRET_MAX)
  .refine(isSecret, SECRET_RULE)
  .describe('Signs deliveries; use 16 characters or more. Default: a generated secret.')

const When = z.string()

export const Webhook = z.strictObject({
  webhookId: z.string(),
  storeId: z.string().optional(),
  url: z.string(),
  events: z.array(z.string()),
  enabled: z.boolean(),
  /**
   * `gone`: the receiver responded 410. `failing`: deliveries failed for too long. `switched_off`: `updateWebhook`
   * disabled it.
   */
  disabledReason: z.enum(['gone', 'failing', 'switched_off']).optional(),
  disabledAt: When.optional(),
  /** First failed attempt since the last successful one. */
  failingSince: When.optional(),
  /** Last event that was not queued, because too many deliveries of the account waited: fetch it with `fetchWebhookEvents`. */
  missedAt: When.optional(),
  /** Time until which the previous secret also signs. */
  oldSecretUntil: When.optional(),
  createdAt: When,
  updatedAt: When,
})

/** Response to a registration or a new secret. Other responses do not contain the secret. */
export const CreatedWebhook = Webhook.extend({
  ...Success,
  secret: z.string().optional(),
  warnings: z.array(z.string()).optional(),
})

/** Converts a row for the API, without the secret. */
export function toWebhook(row: Row<'webhook'>, events: readonly string[], nowMs: number): z.input<typeof Webhook> {
  const overlap = row.old_until_ms !== null && row.old_until_ms > nowMs ? iso(row.old_until_ms) : null
  return definedFields({
    webhookId: row.webhook_id,
    storeId: row.store_id,
    url: row.url,
    events: [...events],
    enabled: row.enabled === 1,
    disabledReason: row.disabled_reason as z.input<typeof Webhook>['disabledReason'] | null,
    disabledAt: row.disabled_ms === null ? null : iso(row.disabled_ms),
    failingSince: row.failing_since_ms === null ? null : iso(row.failing_since_ms),
    missedAt: row.missed_ms === null ? null : iso(row.missed_ms),
    oldSecretUntil: overlap,
    createdAt: iso(row.created_ms),
    updatedAt: iso(row.updated_ms),
  }) as z.input<typeof Webhook>
}

export const DELIVERY_STATUSES = ['pending', 'delivered', 'failed'] as const

const Attempt = z.strictObject({
  attempt: z.int(),
  at: When,
  durationMs: z.int(),
  status: z.int().optional(),
  error: z.string().optional(),
  answer: z.string().optional(),
})

export const Delivery = z.strictObject({
  deliveryId: z.string(),
  webhookId: z.string(),
  eventId: z.string(),
  event: z.string(),
  storeId: z.string().optional(),
  status: z.enum(DELIVERY_STATUSES),
  attempts: z.array(Attempt),
  nextAttemptAt: When.optional(),
  createdAt: When,
  finishedAt: When.optional(),
})

/** Converts a delivery with its attempts for the API. */
export function toDelivery(
  row: Row<'webhook_delivery'>,
  attempts: readonly Row<'webhook_attempt'>[],
): z.input<typeof Delivery> {
  return definedFields({
    deliveryId: row.delivery_id,
    webhookId: row.webhook_id,
    eventId: row.event_id,
    event: row.type,
    storeId: row.store_id,
    status: row.status as (typeof DELIVERY_STATUSES)[number],
    attempts: attempts.map((a) =>
      definedFields({
        attempt: a.attempt,
        at: iso(a.at_ms),
        durationMs: a.took_ms,
        status: a.status,
        error: a.error,
        answer: a.answer,
      }),
    ),
    nextAttemptAt: row.due_ms === null ? null : iso(row.due_ms),
    createdAt: iso(row.created_ms),
    finishedAt: row.finished_ms === null ? null : iso(row.finished_ms),
  }) as z.input<typeof Delivery>
}

export const Envelope = z.strictObject({
  id: z.string(),
  event: z.string(),
  type: z.string(),
  timestamp: When,
  storeId: z.string().optional(),
  data: z.record(z.string(), z.unknown()),
})

/** Converts an event for listings: the body of its deliveries plus its store. */
export function toEnvelope(row: Row<'outbox_event'>): z.input<typeof Envelope> {
  const data = JSON.parse(row.data) as Record<string, unknown>
  return definedFields({
    id: row.event_id,
    event: row.type,
    type: row.type,
    timestamp: iso(row.at_ms),
    storeId: row.store_id,
    data,
  }) as z.input<typeof Envelope>
}
