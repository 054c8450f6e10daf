import { z } from 'zod'
import { eurosOf } from '../../../platform/operations/fields.ts'
import { connector, type Page, type Push, type PushFault } from '../connector.ts'
import {
  type VendorClient,
  type VendorAnswer,
  VendorFault,
  BaseUrlSetting,
  fit,
  fitJoined,
  grossOf,
  readAnswer,
  Secret,
  urlOf,
  VatSetting,
} from '../vendor-client.ts'
import { hashOf } from '../../../platform/operations/idempotency.ts'
import type { TransactionRefund } from '../transaction-refunds.ts'
import { sendTransactions, type RefundPlace, type Transaction } from '../transaction.ts'

/** Requests to one seller. `post` also returns responses with status 400. */
interface SquareApi {
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
function squareSales(api: SquareApi, locationId: string | undefined): Push {
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

/**
 * Square, Connect API v2, Square-Version 2026-09-16 (https://developer.squareup.com/reference/square): ListCatalog,
 * CreateOrder, CreatePayment, ListPayments, RefundPayment. One variation of an item is one article; categories and
 * taxes are separate objects.
 */
const VERSION = '2026-09-16'
/** Maximum number of pages of categories and taxes, 100 objects each. */
const NAMES_PAGES_LIMIT = 50

const SquareCredentials = z.strictObject({
  accessToken: Secret,
  environment: z.enum(['production', 'sandbox']).optional(),
  locationId: z.string().min(1).max(60).optional(),
  vat: VatSetting.optional(),
  baseUrl: BaseUrlSetting,
})
type SquareCredentials = z.output<typeof SquareCredentials>

const addressOf = ({ environment, baseUrl }: SquareCredentials) =>
  baseUrl ?? (environment === 'sandbox' ? 'https://connect.squareupsandbox.com' : 'https://connect.squareup.com')
const headersOf = ({ accessToken }: SquareCredentials) => ({
  authorization: `Bearer ${accessToken}`,
  'square-version': VERSION,
})

const Listed = z.looseObject({ objects: z.array(z.unknown()).optional(), cursor: z.string().nullish() })
const Category = z.looseObject({
  type: z.literal('CATEGORY'),
  id: z.string(),
  category_data: z.looseObject({ name: z.string() }),
})
const Tax = z.looseObject({
  type: z.literal('TAX'),
  id: z.string(),
  tax_data: z.looseObject({
    percentage: z.string().nullish(),
    inclusion_type: z.string().nullish(),
    enabled: z.boolean().nullish(),
  }),
})
const Money = z.looseObject({ amount: z.number().nullish(), currency: z.string().nullish() })
const Ref = z.looseObject({ id: z.string().nullish() })
const Variation = z.looseObject({
  id: z.string(),
  item_variation_data: z.looseObject({
    name: z.string().nullish(),
    upc: z.string().nullish(),
    price_money: Money.nullish(),
    location_overrides: z
      .array(z.looseObject({ location_id: z.string().nullish(), price_money: Money.nullish() }))
      .nullish(),
  }),
})
const Item = z.looseObject({
  present_at_all_locations: z.boolean().nullish(),
  present_at_location_ids: z.array(z.string()).nullish(),
  absent_at_location_ids: z.array(z.string()).nullish(),
  item_data: z.looseObject({
    name: z.string().nullish(),
    is_archived: z.boolean().nullish(),
    tax_ids: z.array(z.string()).nullish(),
    reporting_category: Ref.nullish(),
    categories: z.array(Ref).nullish(),
    variations: z.array(z.unknown()).nullish(),
  }),
})
type Item = z.output<typeof Item>

interface Names {
  categories: Map<string, string>
  taxes: Map<string, { rate: number; isIncluded: boolean }>
}

async function listPage(
  client: VendorClient,
  credentials: SquareCredentials,
  types: string,
  cursor: string | null,
): Promise<z.output<typeof Listed>> {
  const url = urlOf(addressOf(credentials), 'v2/catalog/list', { types, cursor: cursor ?? undefined })
  return readAnswer(
    Listed,
    (await client.send({ method: 'GET', url, headers: headersOf(credentials) })).json ?? {},
    'ListCatalog',
  )
}

async function readNames(client: VendorClient, credentials: SquareCredentials): Promise<Names> {
  const names: Names = { categories: new Map(), taxes: new Map() }
  let cursor: string | null = null
  for (let page = 0; page < NAMES_PAGES_LIMIT; page++) {
    const listed: z.output<typeof Listed> = await listPage(client, credentials, 'CATEGORY,TAX', cursor)
    for (const object of listed.objects ?? []) {
      const category = Category.safeParse(object).data
      if (category) names.categories.set(category.id, category.category_data.name)
      const tax = Tax.safeParse(object).data
      if (tax && tax.tax_data.enabled !== false)
        names.taxes.set(tax.id, {
          rate: Number(tax.tax_data.percentage ?? Number.NaN),
          isIncluded: tax.tax_data.inclusion_type === 'INCLUSIVE',
        })
    }
    cursor = listed.cursor ?? null
    if (cursor === null || cursor === '') return names
  }
  throw new VendorFault('answer_not_understood', 'the list of categories and taxes does not end')
}

function isSoldAt(item: Item, locationId: string | undefined): boolean {
  if (item.item_data.is_archived === true) return false
  if (locationId === undefined) return true
  if (item.present_at_all_locations === false) return item.present_at_location_ids?.includes(locationId) === true
  return item.absent_at_location_ids?.includes(locationId) !== true
}

function articlesOf(
  object: unknown,
  names: Names,
  { locationId, vat }: SquareCredentials,
): (Record<string, unknown> | null)[] {
  const item = Item.safeParse(object).data
  if (!item) return [null]
  if (!isSoldAt(item, locationId)) return []
  const { name, tax_ids, reporting_category, categories, variations } = item.item_data
  const tax = (tax_ids ?? []).map((id) => names.taxes.get(id)).find((found) => found !== undefined)
  const rate = tax?.rate ?? Number(vat ?? 19)
  const category = names.categories.get(reporting_category?.id ?? categories?.[0]?.id ?? '')
  return (variations ?? []).map((raw) => {
    const variation = Variation.safeParse(raw).data
    if (!variation) return null
    const data = variation.item_variation_data
    const money =
      data.location_overrides?.find(({ location_id }) => location_id !== undefined && location_id === locationId)
        ?.price_money ?? data.price_money
    const isPriced = typeof money?.amount === 'number' && (money.currency ?? 'EUR') === 'EUR'
    const price = isPriced ? eurosOf(money.amount ?? 0) : money?.currency
    const hasOne = (variations ?? []).length === 1
    return {
      externalProductId: variation.id,
      ean: data.upc,
      name: hasOne ? fit(name, 120) : fitJoined(name, data.name, 120),
      price: typeof price === 'number' && tax?.isIncluded === false ? grossOf(price, rate) : price,
      vat: rate,
      category: fit(category, 120),
    }
  })
}

function pullArticles(client: VendorClient, credentials: SquareCredentials): (cursor: string | null) => Promise<Page> {
  let names: Names | undefined
  return async (cursor) => {
    names ??= await readNames(client, credentials)
    const known = names
    const { objects, cursor: next } = await listPage(client, credentials, 'ITEM', cursor)
    return {
      records: (objects ?? []).flatMap((object) => articlesOf(object, known, credentials)),
      next: next === undefined || next === '' ? null : next,
    }
  }
}

function salesApi(client: VendorClient, credentials: SquareCredentials): SquareApi {
  const base = addressOf(credentials)
  const headers = headersOf(credentials)
  return {
    get: async (path, query) => (await client.send({ method: 'GET', url: urlOf(base, path, query), headers })).json,
    post: (path, json) =>
      client.send({ method: 'POST', url: urlOf(base, path), headers, json, repeatable: true, expected: [400] }),
  }
}

export const square = connector<SquareCredentials>({
  name: 'square',
  sides: ['pos'],
  credentials: SquareCredentials,
  needs: '`accessToken`, `locationId` (to write sales), `environment`?, `vat`?',
  addressOf,
  sourceOf: (credentials) => `${addressOf(credentials)} ${credentials.locationId ?? ''}`,
  connect: (credentials, client) => ({
    pull: { articles: pullArticles(client, credentials) },
    push: squareSales(salesApi(client, credentials), credentials.locationId),
  }),
})
