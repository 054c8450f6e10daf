import { z } from 'zod'
import type { Push, PushFault } from '../connector.ts'
import type { TransactionLine } from '../transaction-line.ts'
import type { TransactionRefund } from '../transaction-refunds.ts'
import { decimal, sendTransactions, type RefundPlace, type Transaction } from '../transaction.ts'
import { VendorFault } from '../vendor-fault.ts'
import { readAnswer } from '../vendor-values.ts'

/** Sends one GraphQL operation. */
export type SendQuery = (query: string, variables: Record<string, unknown>, repeatable: boolean) => Promise<unknown>

const FIND_ORDER = 'query FindOrder($query: String!) { orders(first: 1, query: $query) { nodes { id } } }'
const Id = z.looseObject({ id: z.string() })
const Found = z.looseObject({ data: z.looseObject({ orders: z.looseObject({ nodes: z.array(Id) }) }) })
const CREATE_ORDER =
  'mutation CreateOrder($order: OrderCreateOrderInput!) { orderCreate(order: $order) { order { id } userErrors { field message } } }'
const UserErrors = z.array(z.looseObject({ field: z.array(z.string()).nullish(), message: z.string() }))
const Created = z.looseObject({
  data: z.looseObject({ orderCreate: z.looseObject({ order: Id.nullish(), userErrors: UserErrors }) }),
})

/** Data of an order that a refund needs: the payment, the lines, and earlier refunds. */
const READ_ORDER = `query ReadOrder($id: ID!) {
  order(id: $id) {
    id
    transactions(first: 10) { id kind gateway }
    refunds(first: 100) { note }
    lineItems(first: 250) { nodes { id title sku } }
  }
}`
const Order = z.looseObject({
  data: z.looseObject({
    order: z
      .looseObject({
        id: z.string(),
        transactions: z.array(z.looseObject({ id: z.string(), kind: z.string(), gateway: z.string().nullish() })),
        refunds: z.array(z.looseObject({ note: z.string().nullish() })),
        lineItems: z.looseObject({
          nodes: z.array(z.looseObject({ id: z.string(), title: z.string(), sku: z.string().nullish() })),
        }),
      })
      .nullable(),
  }),
})
type Order = NonNullable<z.output<typeof Order>['data']['order']>

/** Since 2026-04 Shopify requires an idempotency key for refundCreate. */
const CREATE_REFUND =
  'mutation CreateRefund($input: RefundInput!, $key: String!) { refundCreate(input: $input) @idempotent(key: $key) { refund { id } userErrors { field message } } }'
const Refunded = z.looseObject({
  data: z.looseObject({ refundCreate: z.looseObject({ userErrors: UserErrors }) }),
})

function orderOf({ id, completedAt, currency, totalCent, lines }: Transaction): object {
  const money = (cents: number) => ({ shopMoney: { amount: decimal(cents), currencyCode: currency } })
  return {
    currency,
    taxesIncluded: true,
    sourceIdentifier: id,
    ...(completedAt !== undefined && { processedAt: completedAt }),
    lineItems: lines.map(({ name, quantity, unitCent, ean }) => ({
      title: name,
      quantity,
      priceSet: money(unitCent),
      ...(ean !== undefined && { sku: ean }),
    })),
    transactions: [{ kind: 'SALE', status: 'SUCCESS', amountSet: money(totalCent) }],
  }
}

/** Finds the order line of a line of the sale by title and sku, because Shopify does not store our line id. */
function lineIdOf(line: TransactionLine, sale: Transaction, order: Order): string | undefined {
  const isAlike = ({ name, ean }: TransactionLine) => name === line.name && ean === line.ean
  const nth = sale.lines.slice(0, sale.lines.indexOf(line.sold ?? line)).filter(isAlike).length
  return order.lineItems.nodes.filter(({ title, sku }) => isAlike({ ...line, name: title, ean: sku ?? undefined }))[nth]
    ?.id
}

/** Refunds goods by order line. If one line is not found, refunds only the amount. */
function refundOf({ id, amountCent, lines }: TransactionRefund, order: Order, sale: Transaction): object {
  const payment = order.transactions.find(({ kind }) => kind === 'SALE')
  const refundLineItems = lines.flatMap((line) => {
    const lineItemId = line.kind === 'amount' ? undefined : lineIdOf(line, sale, order)
    return lineItemId === undefined ? [] : [{ lineItemId, quantity: line.quantity, restockType: 'NO_RESTOCK' }]
  })
  return {
    orderId: order.id,
    note: noteOf(id, sale.id),
    ...(refundLineItems.length === lines.length && { refundLineItems }),
    transactions: [
      {
        orderId: order.id,
        kind: 'REFUND',
        gateway: payment?.gateway ?? 'manual',
        amount: decimal(amountCent),
        ...(payment && { parentId: payment.id }),
      },
    ],
  }
}

const noteOf = (refundId: string, saleId: string) => `untag: ${refundId} of ${saleId}`

function faultOf(errors: z.output<typeof UserErrors>, index: number, field: string): PushFault | undefined {
  const [fault] = errors
  return (
    fault && { index, field: fault.field?.join('.') ?? field, code: 'refused', message: fault.message.slice(0, 300) }
  )
}

/**
 * Writes sales as orders, and refunds with refundCreate. orderCreate has no idempotency key, so an earlier order is
 * searched by its sourceIdentifier. Shopify finds a new order only after some seconds, so the ids of orders that this
 * call wrote are also kept in memory.
 */
export function shopifySales(sendQuery: SendQuery): Push {
  const written = new Map<string, string>()
  const find = async (saleId: string): Promise<string | undefined> => {
    const query = `source_identifier:"${saleId.replaceAll(/["\\]/g, '')}"`
    const { nodes } = readAnswer(Found, await sendQuery(FIND_ORDER, { query }, true), 'orders').data.orders
    return nodes[0]?.id
  }
  const sale = async (transaction: Transaction, index: number): Promise<PushFault | undefined> => {
    const known = await find(transaction.id)
    if (known !== undefined) {
      written.set(transaction.id, known)
      return undefined
    }
    const { order, userErrors } = readAnswer(
      Created,
      await sendQuery(CREATE_ORDER, { order: orderOf(transaction) }, false),
      'orderCreate',
    ).data.orderCreate
    if (order) written.set(transaction.id, order.id)
    return faultOf(userErrors, index, '')
  }
  const refund = async (back: TransactionRefund, place: RefundPlace): Promise<PushFault | undefined> => {
    const saleId = place.sale.id
    const id = written.get(saleId)
    const { order } =
      id === undefined ? { order: null } : readAnswer(Order, await sendQuery(READ_ORDER, { id }, true), 'order').data
    if (!order) throw new VendorFault('answer_not_understood', 'Shopify does not return the order of this sale')
    if (order.refunds.some(({ note }) => note === noteOf(back.id, saleId))) return undefined
    const input = refundOf(back, order, place.sale)
    const json = await sendQuery(CREATE_REFUND, { input, key: back.id }, true)
    return faultOf(readAnswer(Refunded, json, 'refundCreate').data.refundCreate.userErrors, place.index, place.field)
  }
  return {
    dataTypes: ['transactions'],
    batch: 50,
    send: (_dataType, records) => sendTransactions(records, { sale, refund }),
  }
}
