import { z } from 'zod'
import { readUntrustedJson } from '../../../../policy/untrusted-json.ts'
import {
  paymentProvider,
  ProviderFault,
  readAnswer,
  type PaidSession,
  type PaymentNotice,
  type ProviderAnswer,
  type RefundNotice,
} from '../provider.ts'
import { BaseUrl, centOf, Credential, PageUrl, PathName } from './shared-fields.ts'

/**
 * SumUp Hosted Checkout (https://developer.sumup.com/api, Checkouts v0.1, Transactions v2.1, refunds v1.0).
 * Notifications are not signed and contain only a checkout id, so the connector queries the checkout.
 *
 * SumUp has no idempotency keys. A checkout reference can be used only once. If the result of a refund is unknown, the
 * connector searches for the refund before it repeats the refund.
 */

const Config = z.strictObject({
  apiKey: Credential,
  merchantCode: PathName,
  baseUrl: BaseUrl.optional().describe('Default https://api.sumup.com.'),
})

const SumUpId = z.string().regex(/^[A-Za-z0-9-]{1,100}$/)
const Checkout = z.object({
  id: SumUpId,
  status: z.string(),
  amount: z.number().min(0),
  currency: z.string(),
  checkout_reference: z.string().max(200).nullish(),
  hosted_checkout_url: PageUrl.nullish(),
  transactions: z.array(z.object({ id: SumUpId, status: z.string() })).nullish(),
})
type Checkout = z.output<typeof Checkout>
const TransactionEvent = z.object({
  id: z.union([z.number(), z.string()]).nullish(),
  type: z.string(),
  status: z.string(),
  amount: z.number(),
})
type TransactionEvent = z.output<typeof TransactionEvent>
const Transaction = z.object({ events: z.array(TransactionEvent).nullish() })
const Body = z.object({ id: SumUpId.nullish(), payload: z.object({ checkout_id: SumUpId.nullish() }).nullish() })

/** After FAILED the shopper may try again. */
function noticeOf({
  id,
  status,
  amount,
  currency,
  checkout_reference,
  transactions,
}: Checkout): PaymentNotice | undefined {
  const about = { sessionId: id, paymentId: checkout_reference ?? null, amountCent: centOf(amount), currency }
  if (status === 'PAID')
    return { ...about, state: 'paid', chargeId: transactions?.find((each) => each.status === 'SUCCESSFUL')?.id ?? null }
  return status === 'EXPIRED' ? { ...about, state: 'ended', chargeId: null } : undefined
}

/** Events that take money back from the merchant. */
const MOVES = new Set(['REFUND', 'CHARGE_BACK'])

/** The refunds and chargebacks among the events of a transaction that the cloud did not request. */
function outsideMoves(
  transactionId: string,
  events: readonly TransactionEvent[],
  { sessionId, currency, doneCents, outsideRefs }: PaidSession,
): RefundNotice[] {
  const known = [...doneCents]
  return events.flatMap(({ id, type, status, amount }): RefundNotice[] => {
    if (!MOVES.has(type) || id === null || id === undefined) return []
    const [amountCent, refundRef] = [centOf(amount), `${transactionId}/${id}`]
    const isOutside = outsideRefs.includes(refundRef)
    // SumUp stores no reference of ours, so one event of the same amount belongs to each refund of the cloud.
    const at = type === 'REFUND' && status !== 'FAILED' && !isOutside ? known.indexOf(amountCent) : -1
    if (at >= 0) known.splice(at, 1)
    if (at >= 0 || (status === 'FAILED' && !isOutside)) return []
    const names = { sessionId, paymentId: null, chargeId: transactionId }
    const kind = type === 'REFUND' ? 'refund' : 'dispute'
    const movement = { kind, ...names, amountCent, currency, rank: null } as const
    return [{ refundRef, refundId: null, state: status === 'FAILED' ? 'failed' : 'done', movement }]
  })
}

/** SumUp responds with 409 if a request can never succeed. */
function throwIfConflict(answer: ProviderAnswer): void {
  if (answer.status === 409) throw new ProviderFault('the provider responded with status 409', true)
}

export const sumup = paymentProvider({
  name: 'sumup',
  guide: {
    setUp: 'Nothing: it is sent with each payment.',
    notifications: 'only the checkout that it requests after a notification',
    cancellation: 'when the page expires; until then it can still be paid',
    repeatedRefund:
      'the list of refunds. It lacks our ids, so the cloud compares amounts and sends one refund of a payment at a time',
    reports: 'nothing: check your account for failures',
    uses: 'Hosted Checkout v0.1, transactions v2.1, refunds v1.0',
    documentation: 'developer.sumup.com, sumup-ts (2026-08)',
    comparedWith: 'nothing',
  },
  config: Config,
  addressOf: ({ baseUrl }) => baseUrl ?? 'https://api.sumup.com',
  refundsOneByOne: true,
  connect({ apiKey, merchantCode, baseUrl = 'https://api.sumup.com' }, send) {
    const headers = { authorization: `Bearer ${apiKey}`, accept: 'application/json' }
    const get = (path: string) => send({ url: `${baseUrl}${path}`, method: 'GET', headers })
    const post = (path: string, body: object) =>
      send({
        url: `${baseUrl}${path}`,
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    const find = async (id: string) => noticeOf(readAnswer(await get(`/v0.1/checkouts/${id}`), Checkout))
    const eventsOf = async (id: string) =>
      readAnswer(await get(`/v2.1/merchants/${merchantCode}/transactions?id=${id}`), Transaction).events ?? []

    /**
     * Finds a refund of this amount that the provider lists and the cloud does not know. `doneCents`: amounts of the
     * known refunds. Returns the id of the found refund.
     */
    async function unknownRefund(
      transactionId: string,
      amountCent: number,
      doneCents: readonly number[],
    ): Promise<string | undefined> {
      const alike = (await eventsOf(transactionId)).filter(
        (event) => event.type === 'REFUND' && event.status !== 'FAILED' && centOf(event.amount) === amountCent,
      )
      const known = doneCents.filter((cent) => cent === amountCent).length
      return alike.length > known ? String(alike.at(-1)?.id ?? `${transactionId}/${alike.length}`) : undefined
    }

    return {
      async createSession({ paymentId, amountCent, currency, returnUrl, notifyUrl, title, untilMs }) {
        const request = {
          checkout_reference: paymentId,
          amount: amountCent / 100,
          currency,
          merchant_code: merchantCode,
          description: title,
          return_url: notifyUrl,
          redirect_url: returnUrl,
          valid_until: new Date(untilMs).toISOString(),
          hosted_checkout: { enabled: true },
        }
        const answer = await post('/v0.1/checkouts', request)
        const isKnown = answer.status === 409
        const checkout = isKnown
          ? readAnswer(await get(`/v0.1/checkouts?checkout_reference=${paymentId}`), z.array(Checkout))[0]
          : readAnswer(answer, Checkout)
        if (!checkout?.hosted_checkout_url)
          throw new ProviderFault('the provider sent a checkout without its page', false)
        return { sessionId: checkout.id, url: checkout.hosted_checkout_url }
      },
      findSession: find,
      async findRefunds(paid) {
        const transactionId = paid.chargeId ?? (await find(paid.sessionId))?.chargeId
        return transactionId ? outsideMoves(transactionId, await eventsOf(transactionId), paid) : []
      },
      async refund({ refundId, sessionId, chargeId, amountCent, isRepeated, doneCents }) {
        const transactionId = chargeId ?? (await find(sessionId))?.chargeId
        if (!transactionId) throw new ProviderFault('the provider reports no transaction for this checkout', true)
        const made = isRepeated ? await unknownRefund(transactionId, amountCent, doneCents) : undefined
        if (made !== undefined) return made
        const answer = await post(`/v1.0/merchants/${merchantCode}/payments/${transactionId}/refunds`, {
          amount: amountCent / 100,
        })
        throwIfConflict(answer)
        readAnswer(answer, z.unknown())
        return refundId
      },
      async readNotification({ body, isOurs }) {
        const read = Body.safeParse(readUntrustedJson(body))
        const id = read.data?.payload?.checkout_id ?? read.data?.id
        // Querying only known sessions prevents attackers from causing requests with invented ids.
        if (!id || !(await isOurs(id))) return undefined
        const notice = await find(id)
        return notice ? [notice] : []
      },
    }
  },
})
