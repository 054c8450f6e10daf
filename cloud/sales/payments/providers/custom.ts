import { createHmac } from 'node:crypto'
import { z } from 'zod'
import { secretsEqual } from '../../../../policy/secrets-equal.ts'
import { readUntrustedJson } from '../../../../policy/untrusted-json.ts'
import { isStrongSecret, standardKey, STRONG_SECRET_RULE } from '../../../platform/webhooks/secret.ts'
import {
  paymentProvider,
  ProviderFault,
  readAnswer,
  type Notification,
  type PaymentNotice,
  type RefundNotice,
} from '../provider.ts'
import { BaseUrl, Credential, PageUrl, isRecent } from './shared-fields.ts'

/** Any provider that implements our protocol (ADR sales). `GET /sessions/{id}` is optional. */

const Config = z.strictObject({
  baseUrl: BaseUrl.describe('Base address of `/sessions` and `/refunds`.'),
  apiKey: Credential.optional().describe('Sent as bearer token.'),
  webhookSecret: z
    .string()
    .refine(isStrongSecret, STRONG_SECRET_RULE)
    .describe('Secret for the signatures of notifications (Standard Webhooks).'),
})

const ProviderId = z.string().regex(/^[\x21-\x7e]{1,200}$/)
const SessionAnswer = z.object({ id: ProviderId, url: PageUrl })
const RefundAnswer = z.object({ id: ProviderId, status: z.string().max(40) })
const Outcome = z.object({
  status: z.string().max(40),
  reference: z.string().max(200).nullish(),
  amountCent: z.int().min(0).nullish(),
  currency: z.string().max(3).nullish(),
  chargeId: ProviderId.nullish(),
})
const NotificationBody = Outcome.extend({ sessionId: ProviderId })
const RefundBody = z.object({
  refundId: ProviderId,
  status: z.string().max(40),
  reference: z.string().max(200).nullish(),
  kind: z.enum(['refund', 'dispute']).nullish(),
  sessionId: ProviderId.nullish(),
  amountCent: z.int().min(0).nullish(),
  currency: z.string().max(3).nullish(),
  at: z.int().min(0).nullish(),
})

const PAID = new Set(['paid', 'succeeded', 'completed'])
const ENDED = new Set(['failed', 'cancelled', 'canceled', 'declined', 'expired'])

const REFUNDED = new Set(['refunded', ...PAID])

/**
 * State of an accepted refund. Returns nothing for statuses that are neither success nor failure, such as `pending`.
 */
function refundNoticeOf(body: z.output<typeof RefundBody>): RefundNotice[] {
  const { refundId: refundRef, status, reference, sessionId, amountCent, currency } = body
  const kind = body.kind ?? 'refund'
  const open = status === 'opened' && kind === 'dispute' ? 'open' : undefined
  const state = REFUNDED.has(status) ? 'done' : ENDED.has(status) ? 'failed' : open
  if (!state) return []
  const names = { sessionId: sessionId ?? null, paymentId: null, chargeId: null }
  const money = { amountCent: amountCent ?? null, currency: currency ?? null }
  return [
    { refundRef, refundId: reference ?? null, state, movement: { kind, ...names, ...money, rank: body.at ?? null } },
  ]
}

function noticeOf(sessionId: string, outcome: z.output<typeof Outcome>): PaymentNotice | undefined {
  const state = PAID.has(outcome.status) ? 'paid' : ENDED.has(outcome.status) ? 'ended' : undefined
  return (
    state && {
      sessionId,
      paymentId: outcome.reference ?? null,
      state,
      amountCent: outcome.amountCent ?? null,
      currency: outcome.currency ?? null,
      chargeId: outcome.chargeId ?? null,
    }
  )
}

export const custom = paymentProvider({
  name: 'custom',
  guide: {
    setUp: 'Every outcome. The cloud sends `apiKey` as bearer token.',
    notifications: 'the signature of a notification',
    cancellation: 'at once',
    repeatedRefund: 'the idempotency key, which you must never forget',
    reports: 'failures, refunds and disputes',
    uses: 'the protocol below',
    documentation: 'this page',
    comparedWith: 'Standard Webhooks: their reference implementation',
  },
  config: Config,
  addressOf: ({ baseUrl }) => baseUrl,
  // The protocol requires that keys never expire.
  refundKeyMs: Infinity,
  connect({ baseUrl, apiKey, webhookSecret }, send) {
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json',
      ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
    }
    const post = (path: string, key: string, body: object) =>
      send({
        url: `${baseUrl}${path}`,
        method: 'POST',
        headers: { ...headers, 'idempotency-key': key },
        body: JSON.stringify(body),
      })
    return {
      async createSession({ paymentId, amountCent, currency, returnUrl }) {
        const answer = readAnswer(
          await post('/sessions', paymentId, { reference: paymentId, amountCent, currency, returnUrl }),
          SessionAnswer,
        )
        return { sessionId: answer.id, url: answer.url }
      },
      async findSession(sessionId) {
        const answer = await send({
          url: `${baseUrl}/sessions/${encodeURIComponent(sessionId)}`,
          method: 'GET',
          headers,
        })
        if (answer.status !== 200) return undefined
        return noticeOf(sessionId, readAnswer(answer, Outcome))
      },
      async refund({ refundId, sessionId, amountCent }) {
        const { id, status } = readAnswer(await post('/refunds', refundId, { sessionId, amountCent }), RefundAnswer)
        if (ENDED.has(status)) throw new ProviderFault(`the provider reported that the refund is ${status}`, true)
        return id
      },
      async readNotification(notification: Notification) {
        if (!isStandardSigned(notification, webhookSecret)) return undefined
        const body = readUntrustedJson(notification.body)
        const refund = RefundBody.safeParse(body)
        if (refund.success) return refundNoticeOf(refund.data)
        const read = NotificationBody.safeParse(body)
        const notice = read.success && noticeOf(read.data.sessionId, read.data)
        return notice ? [notice] : []
      },
    }
  },
})

/** Verifies a Standard Webhooks signature; one valid signature in the header suffices. */
export function isStandardSigned(
  { header, body, nowMs }: Pick<Notification, 'header' | 'body' | 'nowMs'>,
  secret: string,
): boolean {
  const id = header('webhook-id')
  const time = header('webhook-timestamp')
  if (id === undefined || time === undefined || !isRecent(time, nowMs)) return false
  const expected = createHmac('sha256', standardKey(secret)).update(`${id}.${time}.${body}`).digest()
  const signatures = (header('webhook-signature') ?? '').slice(0, 2_000).split(' ')
  return signatures.some(
    (signature) => signature.startsWith('v1,') && secretsEqual(expected, Buffer.from(signature.slice(3), 'base64')),
  )
}
