import webPush from 'web-push'
import { deadline } from '../../../policy/platform.ts'
import type { Services } from '../../platform/operations/operation.ts'
import { OutgoingFault, type OutgoingRequest } from '../../platform/outgoing/outgoing-http.ts'
import { targetRules } from '../../platform/webhooks/register.ts'
import { signatureHeaders } from '../../platform/webhooks/signatures.ts'
import type { Job } from './queue.ts'
import { openTarget, type PushTarget } from './subscriptions.ts'
import { CONTENT_ENCODING, vapidHeader } from './vapid.ts'

/** Time limit for a push service, ms. */
const ANSWER_WITHIN_MS = 10_000
const ANSWER_LIMIT = 4_096

/** Result of one attempt. */
export interface AttemptOutcome {
  readonly atMs: number
  /** HTTP status; null without a response. */
  readonly status: number | null
  /** Error code of docs/reference/errors.md; null if there was a response. */
  readonly error: string | null
  /** `Retry-After` of the response, ms. */
  readonly retryAfterMs: number | null
}

type Message = Pick<OutgoingRequest, 'headers' | 'body' | 'bytes'>

/** Sends a notice once. Call it outside of transactions. Never rejects. */
export async function attempt(job: Job, services: Services, stop: AbortSignal): Promise<AttemptOutcome> {
  const { clock, timers } = services.platform
  const atMs = clock.wall()
  const limit = deadline(timers, ANSWER_WITHIN_MS, stop)
  try {
    const target = openTarget(services.authority.sealer, job.subscription)
    const message =
      job.subscription.kind === 'web' ? await webMessage(job, target, services, atMs) : ownMessage(job, target, atMs)
    const answer = await services.outgoing.send(
      {
        url: target.endpoint,
        method: 'POST',
        ...message,
        answerLimit: ANSWER_LIMIT,
        rules: targetRules(job.subscription.tenant, services.config),
      },
      limit.signal,
    )
    return { atMs, status: answer.status, error: null, retryAfterMs: retryAfterMs(answer.headers['retry-after']) }
  } catch (error) {
    const isOutside = error instanceof OutgoingFault
    if (!isOutside)
      services.log.error(
        { err: error, subscriptionId: job.subscription.subscription_id },
        'an attempt at a push notice failed inside the cloud',
      )
    return { atMs, status: null, error: isOutside ? error.code : 'connection_failed', retryAfterMs: null }
  } finally {
    limit.done()
  }
}

/** Message for a push service (RFC 8030), encrypted for the browser. */
async function webMessage(
  job: Job,
  { endpoint, keys }: PushTarget,
  services: Services,
  atMs: number,
): Promise<Message> {
  if (!keys) throw new Error('a browser’s subscription has no keys')
  return {
    headers: {
      ...pushHeaders(job, atMs),
      'content-type': 'application/octet-stream',
      'content-encoding': CONTENT_ENCODING,
      authorization: await vapidHeader(services.push.vapid, endpoint, subjectOf(services.config.baseUrl), atMs),
    },
    bytes: webPush.encrypt(keys.p256dh, keys.auth, job.delivery.body, CONTENT_ENCODING).cipherText,
  }
}

/** Message for a merchant's endpoint: JSON, signed like webhooks. */
function ownMessage(job: Job, { secret }: PushTarget, atMs: number): Message {
  if (secret === undefined) throw new Error('a merchant’s endpoint has no secret')
  const { delivery } = job
  const signed = { id: delivery.delivery_id, sentS: Math.floor(atMs / 1_000), body: delivery.body }
  return {
    headers: {
      ...pushHeaders(job, atMs),
      'content-type': 'application/json',
      ...signatureHeaders(signed, { current: secret }),
    },
    body: delivery.body,
  }
}

function pushHeaders({ delivery }: Job, nowMs: number): Record<string, string> {
  const ttl = Math.max(0, Math.floor((delivery.expires_ms - nowMs) / 1_000))
  return { 'user-agent': 'untag-push/1', ttl: String(ttl), urgency: delivery.urgency, topic: delivery.topic }
}

/** Contact for push services: the cloud's address if it is https (RFC 8292). */
function subjectOf(baseUrl: string): string {
  return baseUrl.startsWith('https:') ? new URL(baseUrl).origin : 'mailto:push@localhost.invalid'
}

function retryAfterMs(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,6}$/.test(text.trim()) ? Number(text) * 1_000 : null
}
