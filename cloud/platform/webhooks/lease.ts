import { sql } from 'kysely'
import type { Db } from '../persistence/database.ts'
import type { Row } from '../persistence/schema.ts'
import { findEvent, findWebhook } from './queries.ts'

/** Life of a lease, ms. The lease is longer than an attempt plus the recording of its outcome. */
export const LEASE_MS = 30_000

/** The status is a literal. With a parameter SQLite would read all deliveries instead of the partial index. */
const IS_PENDING = sql<boolean>`status = 'pending'`

/** Maximum time to the next attempt, ms. The last regular attempt is 30 min after the first. */
const LONGEST_WAIT_MS = 3_600_000

/** If a wrong clock scheduled deliveries too far in the future, makes these deliveries due now. */
export async function bringForward(db: Db, nowMs: number): Promise<void> {
  await db
    .updateTable('webhook_delivery')
    .set({ due_ms: nowMs })
    .where(IS_PENDING)
    .where('due_ms', '>', nowMs + LONGEST_WAIT_MS)
    .execute()
}

/** A webhook with pending deliveries. */
export interface PendingWebhook {
  webhook_id: string
  /** Owner; null if the webhook was deleted. */
  tenant: string | null
  /** Due time of the webhook's first pending delivery, ms since 1970. */
  due_ms: number
  /** 1 if the last attempts of the webhook failed. */
  is_failing: number
}

/**
 * Lists webhooks with pending deliveries. The query jumps in the index from webhook to webhook and does not read each
 * delivery.
 */
export async function readPending(db: Db): Promise<PendingWebhook[]> {
  const { rows } = await sql<PendingWebhook>`
    with recursive waiting (webhook_id) as (
      select min(webhook_id) from webhook_delivery where status = 'pending'
      union all
      select (select min(d.webhook_id) from webhook_delivery d where d.status = 'pending' and d.webhook_id > waiting.webhook_id)
      from waiting where waiting.webhook_id is not null
    )
    select waiting.webhook_id, w.tenant,
      (select min(d.due_ms) from webhook_delivery d where d.status = 'pending' and d.webhook_id = waiting.webhook_id) as due_ms,
      case when w.failing_since_ms is null then 0 else 1 end as is_failing
    from waiting left join webhook w on w.webhook_id = waiting.webhook_id
    where waiting.webhook_id is not null
    order by 2, 1`.execute(db)
  return rows
}

/** Data for one attempt. */
export interface Job {
  delivery: Row<'webhook_delivery'>
  webhook: Row<'webhook'>
  event: Row<'outbox_event'>
}

/**
 * Leases up to `count` due deliveries of a webhook. Other processes skip these deliveries until the lease expires. Then
 * another process sends the deliveries again with the same ids, because the first process may have died. Times of
 * retries are relative to the first attempt with a recorded outcome.
 */
export async function lease(db: Db, webhookId: string, leaseId: string, count: number, nowMs: number): Promise<Job[]> {
  const due = db
    .selectFrom('webhook_delivery')
    .select('delivery_id')
    .where('webhook_id', '=', webhookId)
    .where(IS_PENDING)
    .where('due_ms', '<=', nowMs)
    .orderBy('due_ms')
    .orderBy('delivery_id')
    .limit(count)
  const taken = await db
    .updateTable('webhook_delivery')
    .set((eb) => ({
      lease_id: leaseId,
      due_ms: nowMs + LEASE_MS,
      first_ms: eb.case().when('attempts', '=', 0).then(eb.val(nowMs)).else(eb.ref('first_ms')).end(),
    }))
    .where('delivery_id', 'in', due)
    .where('status', '=', 'pending')
    .where('due_ms', '<=', nowMs)
    .returningAll()
    .execute()
  if (taken.length === 0) return []
  const webhook = await findWebhook(db, webhookId)
  const jobs: Job[] = []
  for (const delivery of taken) {
    const event = await findEvent(db, delivery.tenant, delivery.event_id)
    if (webhook && event) jobs.push({ delivery, webhook, event })
    else await giveUp(db, delivery.delivery_id, nowMs)
  }
  return jobs
}

async function giveUp(db: Db, deliveryId: string, nowMs: number): Promise<void> {
  await db
    .updateTable('webhook_delivery')
    .set({ status: 'failed', due_ms: null, lease_id: null, finished_ms: nowMs })
    .where('delivery_id', '=', deliveryId)
    .execute()
}

/** Releases the lease of a delivery that was not sent. */
export async function release(db: Db, { delivery }: Job, nowMs: number): Promise<void> {
  await db
    .updateTable('webhook_delivery')
    .set({ lease_id: null, due_ms: nowMs })
    .where('delivery_id', '=', delivery.delivery_id)
    .where('lease_id', '=', delivery.lease_id)
    .where('status', '=', 'pending')
    .execute()
}
