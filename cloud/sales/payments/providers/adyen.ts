import { createHmac } from 'node:crypto'
import { z } from 'zod'
import { secretsEqual } from '../../../../policy/secrets-equal.ts'
import { readUntrustedJson } from '../../../../policy/untrusted-json.ts'
import {
  paymentProvider,
  ProviderFault,
  readAnswer,
  type Movement,
  type Notice,
  type RefundNotice,
} from '../provider.ts'
import { BaseUrl, Credential } from './shared-fields.ts'

/**
 * Adyen Pay by Link (Checkout API v71): Adyen's page, automatic capture.
 * https://docs.adyen.com/unified-commerce/pay-by-link
 */

const Config = z.strictObject({
  apiKey: Credential,
  merchantAccount: z.string().regex(/^[\x21-\x7e]{1,80}$/),
  hmacKey: z.string().regex(/^(?:[0-9A-Fa-f]{2}){16,64}$/, 'must be the HMAC key of the webhook, in hex'),
  liveUrlPrefix: z
    .string()
    .regex(/^[A-Za-z0-9-]{1,80}$/)
    .optional()
    .describe('Required for live accounts; without it requests go to the test system.'),
  baseUrl: BaseUrl.optional(),
})

const AdyenId = z.string().regex(/^[A-Za-z0-9_-]{1,80}$/)
const Amount = z.object({ value: z.int().min(0), currency: z.string().max(3) })
const PaymentLink = z.object({
  id: AdyenId,
  url: z.string().max(4_000).nullish(),
  status: z.string(),
  amount: Amount,
  reference: z.string().nullish(),
})
const Accepted = z.object({ pspReference: AdyenId, status: z.string().nullish() })
const Item = z.object({
  pspReference: z.string().max(80),
  originalReference: z.string().max(80).nullish(),
  merchantAccountCode: z.string().max(80),
  merchantReference: z.string().max(200).nullish(),
  amount: Amount,
  eventCode: z.string().max(80),
  success: z.union([z.string(), z.boolean()]).transform(String),
  additionalData: z.record(z.string(), z.unknown()).nullish(),
})
type Item = z.output<typeof Item>
const Body = z.object({
  notificationItems: z
    .array(z.object({ NotificationRequestItem: Item }))
    .min(1)
    .max(100),
})

/**
 * State of refunds and disputes by event, and the order of events. All events of a dispute have its reference. A refund
 * fails immediately or later, or the bank returns it.
 */
const MOVEMENTS: Readonly<Record<string, Pick<Movement, 'kind' | 'rank'> & Pick<RefundNotice, 'state'>>> = {
  REFUND: { kind: 'refund', state: 'done', rank: 1 },
  CANCEL_OR_REFUND: { kind: 'refund', state: 'done', rank: 1 },
  REFUND_FAILED: { kind: 'refund', state: 'failed', rank: 2 },
  REFUNDED_REVERSED: { kind: 'refund', state: 'failed', rank: 2 },
  REQUEST_FOR_INFORMATION: { kind: 'dispute', state: 'open', rank: 0 },
  NOTIFICATION_OF_CHARGEBACK: { kind: 'dispute', state: 'open', rank: 0 },
  CHARGEBACK: { kind: 'dispute', state: 'done', rank: 1 },
  CHARGEBACK_REVERSED: { kind: 'dispute', state: 'failed', rank: 2 },
  SECOND_CHARGEBACK: { kind: 'dispute', state: 'done', rank: 3 },
  PREARBITRATION_LOST: { kind: 'dispute', state: 'done', rank: 3 },
  PREARBITRATION_WON: { kind: 'dispute', state: 'failed', rank: 4 },
}

/**
 * Uses only signed fields of an item; the link id is not signed. Ignores declined payments, because the shopper may try
 * again on the same page.
 */
function noticesOf({ eventCode, success, merchantReference, originalReference, pspReference, amount }: Item): Notice[] {
  const paymentId = merchantReference ?? null
  if (eventCode === 'AUTHORISATION' && success === 'true' && paymentId !== null) {
    return [
      {
        sessionId: null,
        paymentId,
        state: 'paid',
        amountCent: amount.value,
        currency: amount.currency,
        chargeId: pspReference,
      },
    ]
  }
  const moved = MOVEMENTS[eventCode]
  // Of events without success, only refused refunds matter.
  if (!moved || (success !== 'true' && eventCode !== 'REFUND')) return []
  const { kind, rank } = moved
  const movement: Movement = {
    kind,
    rank,
    sessionId: null,
    paymentId,
    chargeId: originalReference ?? null,
    amountCent: amount.value,
    currency: amount.currency,
  }
  const state = success === 'true' ? moved.state : 'failed'
  return [{ refundRef: pspReference, refundId: kind === 'refund' ? paymentId : null, state, movement }]
}

function addressOf({ baseUrl, liveUrlPrefix }: z.output<typeof Config>): string {
  return (
    baseUrl ??
    (liveUrlPrefix === undefined
      ? 'https://checkout-test.adyen.com'
      : `https://${liveUrlPrefix}-checkout-live.adyenpayments.com/checkout`)
  )
}

export const adyen = paymentProvider({
  name: 'adyen',
  guide: {
    setUp:
      'A standard webhook with an HMAC key: `AUTHORISATION`, `CHARGEBACK` and those of refunds and disputes. Capture must be automatic. Without `liveUrlPrefix`: the test system.',
    notifications: 'the signature of a notification',
    cancellation: 'when the page expires; until then it can still be paid',
    repeatedRefund: 'the idempotency key, for 7 days',
    reports: 'failures, refunds and disputes',
    uses: 'Pay by Link and refunds, Checkout v71; standard webhooks',
    documentation: 'docs.adyen.com, adyen-node-api-library (2026-08)',
    comparedWith: 'HMAC vectors of that library',
  },
  config: Config,
  addressOf,
  acknowledgement: '[accepted]',
  // Adyen stores idempotency keys for at least 7 days, and lists no refunds.
  refundKeyMs: 7 * 24 * 3_600_000,
  connect(config, send) {
    const { apiKey, merchantAccount, hmacKey } = config
    const api = `${addressOf(config)}/v71`
    const headers = { 'x-api-key': apiKey, accept: 'application/json' }
    const post = (path: string, key: string, body: object) =>
      send({
        url: `${api}${path}`,
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json', 'idempotency-key': key },
        body: JSON.stringify({ merchantAccount, ...body }),
      })
    return {
      async createSession({ paymentId, amountCent, currency, returnUrl, title, untilMs }) {
        const request = {
          reference: paymentId,
          amount: { value: amountCent, currency },
          description: title,
          returnUrl,
          expiresAt: new Date(untilMs).toISOString(),
        }
        const { id, url } = readAnswer(await post('/paymentLinks', paymentId, request), PaymentLink)
        if (!url) throw new ProviderFault('the provider sent a link without its address', false)
        return { sessionId: id, url }
      },
      async findSession(sessionId) {
        const link = readAnswer(
          await send({ url: `${api}/paymentLinks/${sessionId}`, method: 'GET', headers }),
          PaymentLink,
        )
        const state = link.status === 'completed' ? 'paid' : link.status === 'expired' ? 'ended' : undefined
        // Only notifications contain the charge id that refunds need.
        return (
          state && {
            sessionId,
            paymentId: link.reference ?? null,
            state,
            amountCent: link.amount.value,
            currency: link.amount.currency,
            chargeId: null,
          }
        )
      },
      async refund({ refundId, chargeId, amountCent, currency }) {
        if (chargeId === null) throw new ProviderFault('the notification with the charge id has not arrived yet', false)
        return readAnswer(
          await post(`/payments/${chargeId}/refunds`, refundId, {
            reference: refundId,
            amount: { value: amountCent, currency },
          }),
          Accepted,
        ).pspReference
      },
      async readNotification({ body }) {
        const read = Body.safeParse(readUntrustedJson(body))
        if (!read.success) return undefined
        const items = read.data.notificationItems.map((each) => each.NotificationRequestItem)
        if (!items.every((item) => isAdyenSigned(item, hmacKey))) return undefined
        // A company's webhook also reports its other merchant accounts.
        return items.filter((item) => item.merchantAccountCode === merchantAccount).flatMap(noticesOf)
      },
    }
  },
})

/** Signed fields of an Adyen notification item. */
interface AdyenItem {
  readonly pspReference: string
  readonly originalReference?: string | null | undefined
  readonly merchantAccountCode: string
  readonly merchantReference?: string | null | undefined
  readonly amount: { readonly value: number; readonly currency: string }
  readonly eventCode: string
  readonly success: string
  readonly additionalData?: Readonly<Record<string, unknown>> | null | undefined
}

/**
 * Verifies an Adyen signature: HMAC-SHA256 in base64 with a hex key, over the fields joined by colons without escaping.
 */
export function isAdyenSigned(item: AdyenItem, hmacKey: string): boolean {
  const signature = item.additionalData?.['hmacSignature']
  const { value, currency } = item.amount
  const fields = [
    item.pspReference,
    item.originalReference ?? '',
    item.merchantAccountCode,
    item.merchantReference ?? '',
    value,
    currency,
    item.eventCode,
    item.success,
  ]
  const expected = createHmac('sha256', Buffer.from(hmacKey, 'hex')).update(fields.join(':')).digest()
  return typeof signature === 'string' && secretsEqual(expected, Buffer.from(signature.slice(0, 200), 'base64'))
}
