import { accountOf } from '../../platform/foundation/caller.ts'
import { mayHave } from '../../platform/foundation/shared-slots.ts'
import { newId } from '../../../policy/ids.ts'
import type { Services } from '../../platform/operations/operation.ts'
import { POLL_MS, startSendLoop, type Attempts, type SendLoop } from '../../platform/operations/send-loop.ts'
import type { Database, Db } from '../../platform/persistence/database.ts'
import {
  isDue,
  lease,
  reschedule,
  readPending,
  type Job,
  type PendingAccount,
  deleteNotice,
  RETRY_DELAYS_MS,
} from './queue.ts'
import { accountsWithNotices, expandNotices } from './staff-notices.ts'
import { deleteSubscription, openTarget, type PushTarget } from './subscriptions.ts'
import webPush from 'web-push'
import { deadline, type Randomness } from '../../../policy/platform.ts'
import { OutgoingFault, type OutgoingRequest } from '../../platform/outgoing/outgoing-http.ts'
import { targetRules } from '../../platform/webhooks/register.ts'
import { signatureHeaders } from '../../platform/webhooks/secret.ts'
import { createECDH, createPrivateKey } from 'node:crypto'
import { SignJWT } from 'jose'
import type { Sealer } from '../../platform/authority/sealing.ts'
import type { VapidKeys } from '../../platform/foundation/ports.ts'

/** Encryption of messages (RFC 8291). */
export const CONTENT_ENCODING = 'aes128gcm'
const NAME = 'vapid'
/** Life of a token, s. RFC 8292 allows 24 h at most. */
const LIFE_S = 12 * 3_600

/**
 * Opens the VAPID keys of the installation. The first start creates them. The keys never change, because browsers bind
 * subscriptions to the public key.
 */
export async function openVapid(database: Database, sealer: Sealer, random: Randomness): Promise<VapidKeys> {
  const sealed = await database.write(async (db) => {
    await db
      .insertInto('sealed_secret')
      .values({ name: NAME, sealed: sealer.seal(random.bytes(32), NAME) })
      .onConflict((c) => c.column('name').doNothing())
      .execute()
    const row = await db.selectFrom('sealed_secret').select('sealed').where('name', '=', NAME).executeTakeFirstOrThrow()
    return row.sealed
  })
  return keysOf(sealer.open(sealed, NAME))
}

/** The key pair of a private key of 32 bytes. */
export function keysOf(secret: Uint8Array): VapidKeys {
  const pair = createECDH('prime256v1')
  pair.setPrivateKey(secret)
  return { publicKey: pair.getPublicKey('base64url'), privateKey: pair.getPrivateKey('base64url') }
}

/**
 * `Authorization` of a request to a push service (RFC 8292 §3). The token is valid for 12 h. web-push would compare this
 * time with the machine's clock instead of `nowMs`.
 *
 * @param sub Contact of the sender: an `https:` or `mailto:` address.
 */
export async function vapidHeader(
  { publicKey, privateKey }: VapidKeys,
  endpoint: string,
  sub: string,
  nowMs: number,
): Promise<string> {
  const point = Buffer.from(publicKey, 'base64url')
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((half) => half.toString('base64url'))
  // Node.js leaves out leading zeros of a private key.
  const d = Buffer.from(privateKey, 'base64url').toString('hex').padStart(64, '0')
  const jwk = { kty: 'EC', crv: 'P-256', x: x ?? '', y: y ?? '', d: Buffer.from(d, 'hex').toString('base64url') }
  const token = await new SignJWT({ sub })
    .setProtectedHeader({ typ: 'JWT', alg: 'ES256' })
    .setAudience(new URL(endpoint).origin)
    .setExpirationTime(Math.floor(nowMs / 1_000) + LIFE_S)
    .sign(createPrivateKey({ format: 'jwk', key: jwk }))
  return `vapid t=${token}, k=${publicKey}`
}

/** Time limit for a push service, ms. */
const ANSWER_WITHIN_MS = 10_000
const ANSWER_LIMIT = 4_096

/** Result of one attempt. */
interface AttemptOutcome {
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
async function attempt(job: Job, services: Services, stop: AbortSignal): Promise<AttemptOutcome> {
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

/** Number of consecutive undeliverable notices after which the cloud removes a subscription. */
const FAILED_LIMIT = 20
/** Statuses after which a retry may succeed, in addition to 5xx. */
const LATER: ReadonlySet<number> = new Set([408, 425, 429])

/** Records the outcome of an attempt: the notice is delivered, rescheduled or discarded. */
async function record(db: Db, job: Job, outcome: AttemptOutcome, services: Services): Promise<void> {
  const { status } = outcome
  const { subscription } = job
  if (status !== null && status >= 200 && status < 300) {
    if (await deleteNotice(db, job)) await countFailed(db, job, 0)
    return
  }
  if (isGone(subscription.kind, status)) {
    await deleteSubscription(db, subscription.subscription_id)
    return
  }
  const dueMs = nextAttempt(job, outcome)
  if (dueMs !== undefined) {
    await reschedule(db, job, dueMs, job.delivery.attempts + 1)
    return
  }
  if (!(await deleteNotice(db, job))) return
  const failed = subscription.failed_in_row + 1
  const about = { subscriptionId: subscription.subscription_id, status, error: outcome.error }
  if (failed < FAILED_LIMIT) {
    await countFailed(db, job, failed)
    services.log.warn(about, 'a push notice could not be delivered and was discarded')
  } else {
    await deleteSubscription(db, subscription.subscription_id)
    services.log.warn(about, `a push subscription was removed after ${FAILED_LIMIT} notices that did not arrive`)
  }
}

/**
 * True if the subscription no longer exists (RFC 8030 §7.3): 404 or 410 of a push service, 410 of a merchant's
 * endpoint.
 */
function isGone(kind: string, status: number | null): boolean {
  return status === 410 || (status === 404 && kind === 'web')
}

/** Time of the next attempt; undefined: none. */
function nextAttempt({ delivery }: Job, { atMs, status, retryAfterMs }: AttemptOutcome): number | undefined {
  const mayRetry = status === null || status >= 500 || LATER.has(status)
  const delayMs = RETRY_DELAYS_MS[delivery.attempts]
  if (!mayRetry || delayMs === undefined) return undefined
  const dueMs = atMs + Math.max(delayMs, retryAfterMs ?? 0)
  return dueMs < delivery.expires_ms ? dueMs : undefined
}

async function countFailed(db: Db, { subscription }: Job, failed: number): Promise<void> {
  if (subscription.failed_in_row === failed) return
  await db
    .updateTable('push_subscription')
    .set({ failed_in_row: failed })
    .where('subscription_id', '=', subscription.subscription_id)
    .execute()
}

/** Maximum number of running attempts: in total, and of one account. */
const OVERALL = 64
const PER_ACCOUNT = 8

/**
 * Sends queued push notices. The account with the fewest used slots comes first, so that slow receivers delay only
 * notices of their own account.
 */
export function startPushSender(
  database: Database,
  getServices: () => Services,
  platform: Services['platform'],
): SendLoop {
  return startSendLoop({ name: 'push notices', maxAttempts: OVERALL, platform, getServices, sendDue })

  async function sendDue(attempts: Attempts): Promise<number> {
    const nowMs = platform.clock.wall()
    const accounts = await accountsWithNotices(database.reads)
    for (const tenant of accounts) await expandNotices(database, tenant, nowMs)
    const due = (await readPending(database.reads)).filter(({ due_ms }) => isDue(due_ms, nowMs))
    const wanted = choose(due, attempts)
    if (wanted.length === 0) return accounts.length > 0 ? 0 : POLL_MS
    const leaseId = newId('lea', platform)
    const jobs = await database.write(async (db) => {
      const taken: Job[] = []
      for (const { tenant, slots } of wanted) taken.push(...(await lease(db, tenant, leaseId, slots, nowMs)))
      return taken
    })
    for (const job of jobs) {
      const { tenant, subscription_id: subscriptionId } = job.subscription
      attempts.start([accountOf(tenant)], { subscriptionId }, (stop) => sendOne(job, stop))
    }
    return jobs.length > 0 || accounts.length > 0 ? 0 : POLL_MS
  }

  async function sendOne(job: Job, stop: AbortSignal): Promise<void> {
    const services = getServices()
    const outcome = await attempt(job, services, stop)
    const wasCut = stop.aborted && outcome.status === null
    await database.write((db) =>
      wasCut ? reschedule(db, job, platform.clock.wall(), job.delivery.attempts) : record(db, job, outcome, services),
    )
  }
}

/** Distributes free slots to accounts. */
function choose(due: readonly PendingAccount[], attempts: Attempts): { tenant: string; slots: number }[] {
  let free = OVERALL - attempts.size
  const taken = new Map<string, number>()
  const inUse = (tenant: string) => attempts.slotsInUse(accountOf(tenant)) + (taken.get(accountOf(tenant)) ?? 0)
  return due
    .toSorted((a, b) => inUse(a.tenant) - inUse(b.tenant))
    .flatMap(({ tenant }) => {
      const has = inUse(tenant)
      const slots = mayHave({ ofOne: PER_ACCOUNT, total: OVERALL }, has, free) - has
      if (slots <= 0) return []
      free -= slots
      taken.set(accountOf(tenant), (taken.get(accountOf(tenant)) ?? 0) + slots)
      return [{ tenant, slots }]
    })
}
