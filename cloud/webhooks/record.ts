import { writeAudit, type OperationRequest } from '../operations/call-context.ts'
import { systemCaller, type Tenant } from '../foundation/caller.ts'
import type { Services } from '../operations/operation.ts'
import type { Db } from '../persistence/database.ts'
import type { WebhookRow } from '../persistence/tables/webhooks.ts'
import { newId } from '../../policy/ids.ts'
import { isDelivered, type AttemptOutcome } from './attempt.ts'
import type { Job } from './lease.ts'
import { updateWebhook } from './operations.ts'
import { changeWebhook, dropPending, findWebhook } from './queries.ts'

const MINUTE_MS = 60_000
/** Time of each attempt, ms after the first (ADR 0031). */
export const SCHEDULE_MS: readonly number[] = [0, 1 * MINUTE_MS, 5 * MINUTE_MS, 30 * MINUTE_MS]

/**
 * Without a successful attempt, the cloud disables a webhook after 24 h if 50 deliveries have failed. After 5 days, the
 * cloud disables the webhook after any number of failed deliveries.
 */
const GIVE_UP_DELIVERIES = 50
const GIVE_UP_AFTER_MS = 24 * 60 * MINUTE_MS
const GIVE_UP_ANYWAY_MS = 5 * GIVE_UP_AFTER_MS
/** HTTP 410: the receiver is gone permanently. */
const GONE = 410

/**
 * Records the outcome of an attempt and schedules the next one. Does nothing if another process has taken over the
 * lease.
 */
export async function record(db: Db, job: Job, outcome: AttemptOutcome, services: Services): Promise<void> {
  const { delivery } = job
  const attempts = delivery.attempts + 1
  const nowMs = services.platform.clock.wall()
  const isGone = outcome.status === GONE
  const wait = SCHEDULE_MS[attempts]
  const isOver = isDelivered(outcome) || isGone || wait === undefined
  const next = isOver
    ? { status: isDelivered(outcome) ? 'delivered' : 'failed', due_ms: null, finished_ms: nowMs }
    : { due_ms: Math.max(nowMs, (delivery.first_ms ?? nowMs) + wait) }
  const mine = await db
    .updateTable('webhook_delivery')
    .set({ attempts, lease_id: null, ...next })
    .where('delivery_id', '=', delivery.delivery_id)
    .where('lease_id', '=', delivery.lease_id)
    .where('status', '=', 'pending')
    .returning('delivery_id')
    .executeTakeFirst()
  if (!mine) return
  const { atMs, tookMs, status, error, answer } = outcome
  await db
    .insertInto('webhook_attempt')
    .values({
      delivery_id: delivery.delivery_id,
      attempt: attempts,
      at_ms: atMs,
      took_ms: tookMs,
      status,
      error,
      answer,
    })
    .execute()
  await noteHealth(
    db,
    await findWebhook(db, delivery.webhook_id),
    { outcome, isGone, isGivenUp: isOver && !isDelivered(outcome) },
    nowMs,
    services,
  )
}

interface RecordedOutcome {
  outcome: AttemptOutcome
  isGone: boolean
  isGivenUp: boolean
}

async function noteHealth(
  db: Db,
  webhook: WebhookRow | undefined,
  { outcome, isGone, isGivenUp }: RecordedOutcome,
  nowMs: number,
  services: Services,
): Promise<void> {
  if (!webhook || webhook.enabled === 0) return
  if (isDelivered(outcome)) {
    if (webhook.failing_since_ms !== null || webhook.failed_in_row > 0)
      await changeWebhook(db, webhook.webhook_id, { failing_since_ms: null, failed_in_row: 0 })
    return
  }
  const since = webhook.failing_since_ms ?? outcome.atMs
  const failed = webhook.failed_in_row + (isGivenUp ? 1 : 0)
  if (webhook.failing_since_ms === null || isGivenUp)
    await changeWebhook(db, webhook.webhook_id, { failing_since_ms: since, failed_in_row: failed })
  const lasts = nowMs - since
  const isHopeless =
    isGivenUp && ((failed >= GIVE_UP_DELIVERIES && lasts >= GIVE_UP_AFTER_MS) || lasts >= GIVE_UP_ANYWAY_MS)
  if (isGone || isHopeless) await disable(db, webhook, isGone ? 'gone' : 'failing', nowMs, services)
}

/** Disables a webhook. `fetchWebhooks` and the audit log show why the webhook is disabled. */
async function disable(
  db: Db,
  webhook: WebhookRow,
  why: 'gone' | 'failing',
  nowMs: number,
  services: Services,
): Promise<void> {
  await changeWebhook(db, webhook.webhook_id, {
    enabled: 0,
    disabled_reason: why,
    disabled_ms: nowMs,
    updated_ms: nowMs,
  })
  await dropPending(db, webhook.webhook_id, nowMs)
  await writeAudit(
    db,
    dispatcherRequest(webhook.tenant as Tenant, services),
    { id: webhook.webhook_id, owner: undefined },
    nowMs,
    services,
  )
  services.log.warn({ webhookId: webhook.webhook_id, reason: why }, 'a webhook was disabled')
}

/** Request for audit rows about changes by the dispatcher. */
function dispatcherRequest(tenant: Tenant, { platform }: Services): OperationRequest {
  const caller = systemCaller(tenant, 'webhook-dispatcher')
  return {
    operation: updateWebhook,
    caller,
    input: {},
    isLegacyForm: false,
    idempotencyKey: undefined,
    requestId: newId('req', platform),
  }
}
