import { z } from 'zod'
import { hashOf } from '../../operations/idempotency.ts'
import type { Push, PushFault } from '../connector.ts'
import type { TransactionRefund } from '../transaction-refunds.ts'
import { sendTransactions, type RefundPlace, type Transaction } from '../transaction.ts'
import type { VendorAnswer } from '../vendor-client.ts'
import { VendorFault } from '../vendor-fault.ts'
import { readAnswer } from '../vendor-values.ts'

/** Requests to one seller. `post` also returns responses with status 400. */
export interface SquareApi {
  get(path: string, query: Readonly<Record<string, string | undefined>>): Promise<unknown>
  post(path: string, json: object): Promise<VendorAnswer>
}

/** Maximum number of pages, 100 payments each, that the search for a payment reads. */
const PAYMENT_PAGES_LIMIT = 50

const Refusal = z.looseObject({
  errors: z
    .array(z.looseObject({ code: z.string(), detail: z.string().nullish(), field: z.string().nullish() }))
    .min(1),
})
const Ordered = z.looseObject({ order: z.looseObject({ id: z.string() }) })
const Payment = z.looseObject({
  id: z.string(),
  external_details: z.looseObject({ source_id: z.string().nullish() }).nullish(),
  refund_ids: z.array(z.string()).nullish(),
})
type Payment = z.output<typeof Payment>
const Paid = z.looseObject({ payment: Payment })
const Payments = z.looseObject({ payments: z.array(Payment).optional(), cursor: z.string().nullish() })
const Refund = z.looseObject({ refund: z.looseObject({ reason: z.string().nullish() }) })

/**
 * Writes a sale as an order and an external payment. Writes a refund as a refund of that payment, because RefundPayment
 * also records refunds of external payments. Idempotency keys depend on the ids, so that Square carries out each
 * request once.
 *
 * Square does not document how long it stores keys. If a sale has refunds, the connector therefore first searches for
 * the payment of the sale, so that a late refund does not write the sale again.
 */
export function squareSales(api: SquareApi, locationId: string | undefined): Push {
  const key = (what: string, id: string) => hashOf(`${what} ${locationId} ${id}`)
  const written = new Map<string, Payment>()

  const sale = async (transaction: Transaction, index: number): Promise<PushFault | undefined> => {
    const { id, currency, totalCent, refunds } = transaction
    const known = refunds.length === 0 ? undefined : await findPayment(api, locationId, transaction)
    if (known) {
      written.set(id, known)
      return undefined
    }
    const made = await api.post('v2/orders', {
      idempotency_key: key('order', id),
      order: orderOf(transaction, locationId),
    })
    if (made.status === 400) return faultOf(made.json, index, '')
    const order_id = readAnswer(Ordered, made.json, 'CreateOrder').order.id
    // A sale of 0 EUR has no payment.
    if (totalCent === 0) return undefined
    const paid = await api.post('v2/payments', {
      idempotency_key: key('payment', id),
      source_id: 'EXTERNAL',
      amount_money: { amount: totalCent, currency },
      order_id,
      location_id: locationId,
      external_details: { type: 'OTHER', source: 'untag', source_id: id },
    })
    if (paid.status === 400) return faultOf(paid.json, index, '')
    written.set(id, readAnswer(Paid, paid.json, 'CreatePayment').payment)
    return undefined
  }

  const refund = async ({ id, amountCent }: TransactionRefund, place: RefundPlace): Promise<PushFault | undefined> => {
    const payment = written.get(place.sale.id)
    if (!payment) throw new VendorFault('answer_not_understood', 'Square does not return the payment of this sale')
    const reason = `untag ${id}`
    for (const refundId of payment.refund_ids ?? []) {
      const before = readAnswer(
        Refund,
        await api.get(`v2/refunds/${encodeURIComponent(refundId)}`, {}),
        'GetPaymentRefund',
      )
      if (before.refund.reason === reason) return undefined
    }
    const made = await api.post('v2/refunds', {
      idempotency_key: key('refund', id),
      payment_id: payment.id,
      amount_money: { amount: amountCent, currency: place.sale.currency },
      reason,
    })
    return made.status === 400 ? faultOf(made.json, place.index, place.field) : undefined
  }

  return {
    dataTypes: ['transactions'],
    batch: 50,
    async send(_dataType, records) {
      if (locationId === undefined)
        throw new VendorFault('system_refused', 'locationId is required to write sales to Square')
      return sendTransactions(records, { sale, refund })
    },
  }
}

function orderOf({ id, currency, lines }: Transaction, locationId: string | undefined): object {
  const line_items = lines.map(({ name, quantity, unitCent }) => ({
    name,
    quantity: String(quantity),
    base_price_money: { amount: unitCent, currency },
  }))
  return { location_id: locationId, reference_id: id.slice(0, 40), line_items }
}

/** Finds the external payment of an earlier sale among payments of the same amount that are not older than the sale. */
async function findPayment(
  api: SquareApi,
  locationId: string | undefined,
  { id, totalCent, completedAt }: Transaction,
): Promise<Payment | undefined> {
  let cursor: string | undefined
  for (let page = 0; page < PAYMENT_PAGES_LIMIT; page++) {
    const query = { location_id: locationId, total: String(totalCent), begin_time: completedAt, cursor }
    const { payments, cursor: next } = readAnswer(Payments, await api.get('v2/payments', query), 'ListPayments')
    const found = payments?.find(({ external_details }) => external_details?.source_id === id)
    if (found) return found
    if (next === undefined || next === null || next === '') return undefined
    cursor = next
  }
  throw new VendorFault(
    'system_refused',
    'Square has too many payments of this amount to find the payment of this sale',
  )
}

function faultOf(json: unknown, index: number, field: string): PushFault {
  const { errors } = readAnswer(Refusal, json, 'a refused request')
  const [fault] = errors
  return {
    index,
    field: fault?.field ?? field,
    code: 'refused',
    message: `${fault?.code ?? ''} ${fault?.detail ?? ''}`.trim().slice(0, 300),
  }
}
