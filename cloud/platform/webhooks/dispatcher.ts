import { mayHave } from '../foundation/shared-slots.ts'
import { newId } from '../../../policy/ids.ts'
import { deletedBeforeMs } from '../foundation/config.ts'
import type { Services } from '../operations/operation.ts'
import { POLL_MS, startSendLoop, type Attempts, type SendLoop } from '../operations/send-loop.ts'
import type { Database, Db } from '../persistence/database.ts'
import { bringForward, lease, readPending, release, type Job, type PendingWebhook } from './lease.ts'
import { planDeliveries, pruneDeliveries } from './plan.ts'
import { writeAudit, type OperationRequest } from '../operations/call-context.ts'
import { accountOf, systemCaller, type Tenant } from '../foundation/caller.ts'
import type { Row } from '../persistence/schema.ts'
import { updateWebhook } from './operations.ts'
import { changeWebhook, dropPending, findWebhook } from './queries.ts'
import { deadline } from '../../../policy/platform.ts'
import { OutgoingFault } from '../outgoing/outgoing-http.ts'
import { targetRules } from './register.ts'
import { openSecret, signatureHeaders, type Secrets } from './secret.ts'
import { iso } from '../operations/fields.ts'

/** Body of a delivery, the same at every attempt. `event` and `type` are equal, because the specification has both. */
function envelopeOf(row: Pick<Row<'outbox_event'>, 'event_id' | 'type' | 'at_ms' | 'data'>): string {
  const head = JSON.stringify({ id: row.event_id, event: row.type, type: row.type, timestamp: iso(row.at_ms) })
  return `${head.slice(0, -1)},"data":${row.data}}`
}

/** Time limit for the receiver's acknowledgement, ms (specification, Events). */
const ACKNOWLEDGE_WITHIN_MS = 10_000
/** Maximum number of response bytes that the cloud reads. */
const ANSWER_LIMIT = 64 * 1024
/** Maximum number of response bytes that the cloud stores. */
const STORED_ANSWER_LIMIT = 1_024

/** Result of one attempt. */
interface AttemptOutcome {
  atMs: number
  tookMs: number
  /** HTTP status; null without a response. */
  status: number | null
  /** Error code of docs/reference/errors.md; null if there was a response. */
  error: string | null
  answer: string | null
}

/** True if the receiver acknowledged the delivery with 2xx. */
function isDelivered({ status }: AttemptOutcome): boolean {
  return status !== null && status >= 200 && status < 300
}

/** Sends a delivery once. Call it outside of transactions. Never rejects. */
async function attempt({ webhook, event }: Job, services: Services, stop: AbortSignal): Promise<AttemptOutcome> {
  const { clock, timers } = services.platform
  const atMs = clock.wall()
  const began = clock.elapsed()
  const outcome = (result: Pick<AttemptOutcome, 'status' | 'error' | 'answer'>): AttemptOutcome => ({
    atMs,
    tookMs: Math.max(0, Math.round(clock.elapsed() - began)),
    ...result,
  })
  const limit = deadline(timers, ACKNOWLEDGE_WITHIN_MS, stop)
  try {
    const body = envelopeOf(event)
    const signatures = signatureHeaders(
      { id: event.event_id, sentS: Math.floor(atMs / 1_000), body },
      secretsOf(webhook, services, atMs),
    )
    const answer = await services.outgoing.send(
      {
        url: webhook.url,
        method: 'POST',
        headers: { 'content-type': 'application/json', 'user-agent': 'untag-webhooks/1', accept: '*/*', ...signatures },
        body,
        answerLimit: ANSWER_LIMIT,
        rules: targetRules(webhook.tenant, services.config),
      },
      limit.signal,
    )
    return outcome({ status: answer.status, error: null, answer: shownAnswer(answer.body) })
  } catch (error) {
    if (!(error instanceof OutgoingFault))
      services.log.error(
        { err: error, webhookId: webhook.webhook_id },
        'an attempt at a webhook failed inside the cloud',
      )
    return outcome({
      status: null,
      error: error instanceof OutgoingFault ? error.code : 'connection_failed',
      answer: null,
    })
  } finally {
    limit.done()
  }
}

function secretsOf(webhook: Row<'webhook'>, { authority }: Services, nowMs: number): Secrets {
  const current = openSecret(authority.sealer, webhook.webhook_id, webhook.secret)
  const isOverlap = webhook.old_secret !== null && webhook.old_until_ms !== null && webhook.old_until_ms > nowMs
  return {
    current,
    ...(isOverlap &&
      webhook.old_secret !== null && { old: openSecret(authority.sealer, webhook.webhook_id, webhook.old_secret) }),
  }
}

/** Converts the start of a response to text without control characters, for database and logs. */
function shownAnswer(body: Uint8Array): string | null {
  const text = new TextDecoder()
    .decode(body.subarray(0, STORED_ANSWER_LIMIT))
    .replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g, '\ufffd')
  return text === '' ? null : text
}

const MINUTE_MS = 60_000
/** Time of each attempt, ms after the first (ADR webhooks). */
const SCHEDULE_MS: readonly number[] = [0, 1 * MINUTE_MS, 5 * MINUTE_MS, 30 * MINUTE_MS]

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
async function record(db: Db, job: Job, outcome: AttemptOutcome, services: Services): Promise<void> {
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
  webhook: Row<'webhook'> | undefined,
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
  webhook: Row<'webhook'>,
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

const PRUNE_MS = 3_600_000
/**
 * Maximum numbers of running attempts: of one webhook, of one account, of one failing webhook, in total, and of all
 * failing webhooks.
 */
const PER_WEBHOOK = 4
const PER_ACCOUNT = 32
const PER_FAILING = 1
const OVERALL = 64
const OVERALL_FAILING = 24
/** Name of the slots that all failing webhooks share. */
const FAILING = 'failing'

/**
 * Starts the loop that delivers events (ADR webhooks). Operations store events in `outbox_event`. The dispatcher creates
 * deliveries for new events, leases due deliveries, sends them and records the outcomes. Each of these steps is a
 * transaction of its own, but sending happens outside of transactions.
 *
 * A slow receiver uses only its own few slots, and failing webhooks share some of all slots. The account with the
 * fewest used slots comes first, so that slow receivers delay only deliveries of their own account.
 */
export function startDispatcher(
  database: Database,
  getServices: () => Services,
  platform: Services['platform'],
): SendLoop {
  let prunedMs = platform.clock.elapsed()
  return startSendLoop({ name: 'webhooks', maxAttempts: OVERALL, platform, getServices, sendDue })

  async function sendDue(attempts: Attempts): Promise<number> {
    let isMore = await planDeliveries(database, platform)
    const waiting = await readPending(database.reads)
    const nowMs = platform.clock.wall()
    const leaseId = newId('lea', platform)
    const wanted = choose(
      waiting.filter((w) => w.due_ms <= nowMs),
      attempts,
    )
    if (wanted.length > 0) {
      const jobs = await database.write(async (db) => {
        const taken: { job: Job; isFailing: boolean }[] = []
        for (const { webhookId, slots, isFailing } of wanted) {
          for (const job of await lease(db, webhookId, leaseId, slots, nowMs)) taken.push({ job, isFailing })
        }
        return taken
      })
      for (const { job, isFailing } of jobs) send(attempts, job, isFailing)
      // A webhook may have used fewer slots than `choose` assigned. The next check gives the rest to other webhooks.
      isMore ||= jobs.length > 0
    }
    await prune()
    const later = waiting.filter((w) => w.due_ms > nowMs).map((w) => w.due_ms - nowMs)
    return isMore ? 0 : Math.min(POLL_MS, ...later)
  }

  /**
   * Once an hour, deletes old deliveries and corrects due times that are too far in the future. Does nothing while the
   * clock is untrusted.
   */
  async function prune(): Promise<void> {
    if (platform.clock.elapsed() - prunedMs < PRUNE_MS || getServices().authority.clock.untrustedReason() !== null)
      return
    prunedMs = platform.clock.elapsed()
    const nowMs = platform.clock.wall()
    await pruneDeliveries(database, deletedBeforeMs(getServices().config.keepDays, 'events', nowMs))
    await database.write((db) => bringForward(db, nowMs))
  }

  function send(attempts: Attempts, job: Job, isFailing: boolean): void {
    const { webhook_id: webhookId, tenant } = job.webhook
    attempts.start([webhookId, accountOf(tenant), ...(isFailing ? [FAILING] : [])], { webhookId }, async (stop) => {
      const services = getServices()
      const outcome = await attempt(job, services, stop)
      const wasCut = stop.aborted && outcome.status === null
      await database.write((db) =>
        wasCut ? release(db, job, platform.clock.wall()) : record(db, job, outcome, services),
      )
    })
  }
}

/** Distributes free slots to webhooks within their limits. Failing webhooks come last. */
function choose(
  due: readonly PendingWebhook[],
  attempts: Attempts,
): { webhookId: string; slots: number; isFailing: boolean }[] {
  let free = OVERALL - attempts.size
  let freeFailing = OVERALL_FAILING - attempts.slotsInUse(FAILING)
  const taken = new Map<string, number>()
  const inUse = (accountId: string) => attempts.slotsInUse(accountId) + (taken.get(accountId) ?? 0)
  const chosen: { webhookId: string; slots: number; isFailing: boolean }[] = []
  for (const each of due
    .map((waiting) => ({ ...waiting, accountId: accountOf(waiting.tenant ?? '') }))
    .map((waiting) => ({ ...waiting, has: inUse(waiting.accountId) }))
    .sort((a, b) => a.is_failing - b.is_failing || a.has - b.has)) {
    const { webhook_id: webhookId, is_failing, accountId } = each
    const isFailing = is_failing === 1
    const own = (isFailing ? PER_FAILING : PER_WEBHOOK) - attempts.slotsInUse(webhookId)
    const has = inUse(accountId)
    const more = mayHave({ ofOne: PER_ACCOUNT, total: OVERALL }, has, free) - has
    const slots = Math.min(own, more, isFailing ? freeFailing : free)
    if (slots <= 0) continue
    free -= slots
    if (isFailing) freeFailing -= slots
    taken.set(accountId, (taken.get(accountId) ?? 0) + slots)
    chosen.push({ webhookId, slots, isFailing })
  }
  return chosen
}
