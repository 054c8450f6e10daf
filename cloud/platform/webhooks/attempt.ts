import { deadline } from '../../../policy/platform.ts'
import type { Services } from '../operations/operation.ts'
import { OutgoingFault } from '../outgoing/outgoing-http.ts'
import type { WebhookRow } from '../persistence/tables/webhooks.ts'
import type { Job } from './lease.ts'
import { targetRules } from './register.ts'
import { openSecret } from './secret.ts'
import { signatureHeaders, type Secrets } from './signatures.ts'
import { iso } from '../operations/fields.ts'
import type { OutboxEventRow } from '../persistence/tables/accounts.ts'

/** Body of a delivery, the same at every attempt. `event` and `type` are equal, because the specification has both. */
function envelopeOf(row: Pick<OutboxEventRow, 'event_id' | 'type' | 'at_ms' | 'data'>): string {
  const head = JSON.stringify({ id: row.event_id, event: row.type, type: row.type, timestamp: iso(row.at_ms) })
  return `${head.slice(0, -1)},"data":${row.data}}`
}

/** Time limit for the receiver's acknowledgement, ms (specification, Events). */
export const ACKNOWLEDGE_WITHIN_MS = 10_000
/** Maximum number of response bytes that the cloud reads. */
const ANSWER_LIMIT = 64 * 1024
/** Maximum number of response bytes that the cloud stores. */
const STORED_ANSWER_LIMIT = 1_024

/** Result of one attempt. */
export interface AttemptOutcome {
  atMs: number
  tookMs: number
  /** HTTP status; null without a response. */
  status: number | null
  /** Error code of docs/reference/errors.md; null if there was a response. */
  error: string | null
  answer: string | null
}

/** True if the receiver acknowledged the delivery with 2xx. */
export function isDelivered({ status }: AttemptOutcome): boolean {
  return status !== null && status >= 200 && status < 300
}

/** Sends a delivery once. Call it outside of transactions. Never rejects. */
export async function attempt({ webhook, event }: Job, services: Services, stop: AbortSignal): Promise<AttemptOutcome> {
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

function secretsOf(webhook: WebhookRow, { authority }: Services, nowMs: number): Secrets {
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
