import { sql } from 'kysely'
import type { Db } from '../persistence/database.ts'
import type { OutboxEventRow } from '../persistence/tables/accounts.ts'
import type { WebhookDeliveryRow, WebhookRow } from '../persistence/tables/webhooks.ts'
import { findEvent, findWebhook } from './queries.ts'

/** How long who has taken a delivery may take to record what became of it, ms: more than an attempt can last. */
export const LEASE_MS = 30_000

/** Written out: with a parameter SQLite would not see that the index of these rows will do, and read all that were ever sent. */
const IS_PENDING = sql<boolean>`status = 'pending'`

/** Nothing is due later than this, ms: the last attempt is made half an hour after the first. */
const LONGEST_WAIT_MS = 3_600_000

/** What is due later than anything can be was put there by a clock that was ahead: it is due now. */
export async function bringForward(db: Db, nowMs: number): Promise<void> {
  await db
    .updateTable('webhook_delivery')
    .set({ due_ms: nowMs })
    .where(IS_PENDING)
    .where('due_ms', '>', nowMs + LONGEST_WAIT_MS)
    .execute()
}

/** A webhook that something waits for. */
export interface PendingWebhook {
  webhook_id: string
  /** Whose it is; null: it is gone. */
  tenant: string | null
  /** The earliest of what waits, ms since 1970. */
  due_ms: number
  /** Nothing arrives there at the moment. */
  is_failing: number
}

/** Every webhook with something to send, now or later. Goes from one to the next in the index, however much waits for each. */
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

/** Everything that an attempt needs. */
export interface Job {
  delivery: WebhookDeliveryRow
  webhook: WebhookRow
  event: OutboxEventRow
}

/**
 * Takes up to `count` due deliveries of a webhook for `leaseId`. Until the lease ends nobody else takes them; who dies with a
 * lease has sent once or not at all, and the next one sends (again) under the same id. The schedule goes by the first attempt of which
 * anybody knows what became.
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

/** Gives back what was taken but not sent. */
export async function release(db: Db, { delivery }: Job, nowMs: number): Promise<void> {
  await db
    .updateTable('webhook_delivery')
    .set({ lease_id: null, due_ms: nowMs })
    .where('delivery_id', '=', delivery.delivery_id)
    .where('lease_id', '=', delivery.lease_id)
    .where('status', '=', 'pending')
    .execute()
}
