import { z } from 'zod'
import { connector, type Page, type Push, type PushFault, type TransactionLine } from '../connector.ts'
import {
  type VendorAnswer,
  type VendorClient,
  VendorFault,
  amountOf,
  BaseUrlSetting,
  fit,
  fitJoined,
  grossOf,
  readAnswer,
  readRecord,
  Secret,
  urlOf,
  VatSetting,
} from '../vendor-client.ts'
import type { TransactionRefund } from '../transaction-refunds.ts'
import { decimal, sendTransactions, type RefundPlace, type Transaction } from '../transaction.ts'

/** Sends one GraphQL operation. */
type SendQuery = (query: string, variables: Record<string, unknown>, repeatable: boolean) => Promise<unknown>

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
function shopifySales(sendQuery: SendQuery): Push {
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

/**
 * Shopify, GraphQL Admin API 2026-07 (https://shopify.dev/docs/api/admin-graphql/2026-07; the REST Admin API is legacy
 * since October 2024). One variant is one article. Shopify reports throttling as a GraphQL error with status 200.
 */
const VERSION = '2026-07'
const PAGE = 100

const ShopifyCredentials = z
  .strictObject({
    shop: z
      .string()
      .regex(
        /^[a-z0-9][a-z0-9-]{0,60}\.myshopify\.com$/,
        'must be the shop’s own domain, such as hafenkante.myshopify.com',
      ),
    accessToken: Secret.optional(),
    clientId: Secret.optional(),
    clientSecret: Secret.optional(),
    vat: VatSetting.optional(),
    reducedVatTag: z.string().min(1).max(255).optional(),
    baseUrl: BaseUrlSetting,
  })
  .refine(
    (given) => (given.accessToken === undefined) !== (given.clientId === undefined || given.clientSecret === undefined),
    'must contain either accessToken, or clientId and clientSecret',
  )
type ShopifyCredentials = z.output<typeof ShopifyCredentials>

const addressOf = ({ shop, baseUrl }: ShopifyCredentials) => baseUrl ?? `https://${shop}`

const Errors = z.looseObject({
  errors: z
    .union([
      z.string(),
      z.array(
        z.looseObject({ message: z.string(), extensions: z.looseObject({ code: z.string().optional() }).optional() }),
      ),
    ])
    .optional(),
})
const Cost = z.looseObject({
  extensions: z.looseObject({
    cost: z.looseObject({
      requestedQueryCost: z.number(),
      throttleStatus: z.looseObject({ currentlyAvailable: z.number(), restoreRate: z.number().positive() }),
    }),
  }),
})

function codesOf(json: unknown): string[] {
  const { errors } = Errors.safeParse(json).data ?? {}
  return typeof errors === 'string'
    ? [errors]
    : (errors ?? []).map(({ message, extensions }) => extensions?.code ?? message)
}

/** Time until the rate limit allows the query's cost again, ms. */
function throttledMs({ json }: VendorAnswer): number | undefined {
  if (!codesOf(json).includes('THROTTLED')) return undefined
  const cost = Cost.safeParse(json).data?.extensions.cost
  if (!cost) return 1_000
  const { currentlyAvailable, restoreRate } = cost.throttleStatus
  return Math.max(500, Math.ceil(((cost.requestedQueryCost - currentlyAvailable) / restoreRate) * 1_000))
}

function querySender(client: VendorClient, credentials: ShopifyCredentials): SendQuery {
  const base = addressOf(credentials)
  const shopify = client.throttledBy(throttledMs)
  let token = credentials.accessToken
  const login = async (): Promise<string> => {
    const form = {
      grant_type: 'client_credentials',
      client_id: credentials.clientId ?? '',
      client_secret: credentials.clientSecret ?? '',
    }
    const { json, status } = await client.send({
      method: 'POST',
      url: urlOf(base, 'admin/oauth/access_token'),
      form,
      repeatable: true,
      expected: [400],
    })
    if (status === 400)
      throw new VendorFault('credentials_refused', 'the shop rejects clientId and clientSecret', { status })
    return readAnswer(z.looseObject({ access_token: z.string().min(1) }), json, 'the login').access_token
  }
  return async (query, variables, repeatable) => {
    token ??= await login()
    const headers = { 'x-shopify-access-token': token }
    const { json } = await shopify.send({
      method: 'POST',
      url: urlOf(base, `admin/api/${VERSION}/graphql.json`),
      headers,
      json: { query, variables },
      repeatable,
    })
    const [code] = codesOf(json)
    if (code === 'ACCESS_DENIED')
      throw new VendorFault(
        'credentials_refused',
        'the token lacks an access scope: read_products, or write_orders for pushes',
      )
    if (code !== undefined)
      throw new VendorFault(
        code === 'INTERNAL_SERVER_ERROR' ? 'system_unavailable' : 'system_refused',
        `Shopify rejects the query (${code.slice(0, 80)})`,
      )
    return json
  }
}

const ARTICLES = `query Articles($first: Int!, $after: String) {
  shop { currencyCode taxesIncluded }
  productVariants(first: $first, after: $after, query: "product_status:active") {
    nodes { id barcode price compareAtPrice title taxable image { url } product { title vendor productType tags } }
    pageInfo { hasNextPage endCursor }
  }
}`

const Articles = z.looseObject({
  data: z.looseObject({
    shop: z.looseObject({ currencyCode: z.string(), taxesIncluded: z.boolean() }),
    productVariants: z.looseObject({
      nodes: z.array(z.unknown()),
      pageInfo: z.looseObject({ hasNextPage: z.boolean(), endCursor: z.string().nullable() }),
    }),
  }),
})

const Variant = z.looseObject({
  id: z.string(),
  barcode: z.string().nullish(),
  price: z.union([z.string(), z.number()]),
  compareAtPrice: z.union([z.string(), z.number()]).nullish(),
  title: z.string(),
  image: z.looseObject({ url: z.string() }).nullish(),
  product: z.looseObject({
    title: z.string(),
    vendor: z.string().nullish(),
    productType: z.string().nullish(),
    tags: z.array(z.string()),
  }),
})

function articleOf(
  node: unknown,
  { vat, reducedVatTag }: ShopifyCredentials,
  taxesIncluded: boolean,
): Record<string, unknown> | null {
  return readRecord(Variant, node, ({ id, barcode, price, compareAtPrice, title, image, product }) => {
    const rate = reducedVatTag !== undefined && product.tags.includes(reducedVatTag) ? 7 : Number(vat ?? 19)
    const gross = (amount: unknown) => (taxesIncluded || typeof amount !== 'number' ? amount : grossOf(amount, rate))
    return {
      externalProductId: id,
      ean: barcode,
      name: title === 'Default Title' ? fit(product.title, 120) : fitJoined(product.title, title, 120),
      price: gross(amountOf(price)),
      oldPrice: gross(amountOf(compareAtPrice)),
      vat: rate,
      brand: fit(product.vendor, 120),
      category: fit(product.productType, 120),
      imageUrl: image?.url,
    }
  })
}

async function readArticles(
  sendQuery: SendQuery,
  credentials: ShopifyCredentials,
  cursor: string | null,
): Promise<Page> {
  const { data } = readAnswer(
    Articles,
    await sendQuery(ARTICLES, { first: PAGE, after: cursor }, true),
    'productVariants',
  )
  if (data.shop.currencyCode !== 'EUR')
    throw new VendorFault(
      'system_refused',
      `the shop’s currency is ${data.shop.currencyCode.slice(0, 3)}; only EUR is possible`,
    )
  const { nodes, pageInfo } = data.productVariants
  return {
    records: nodes.map((node) => articleOf(node, credentials, data.shop.taxesIncluded)),
    next: pageInfo.hasNextPage ? pageInfo.endCursor : null,
  }
}

export const shopify = connector<ShopifyCredentials>({
  name: 'shopify',
  sides: ['pos'],
  credentials: ShopifyCredentials,
  needs: '`shop`, `accessToken` or `clientId` and `clientSecret`, `vat`?, `reducedVatTag`?',
  addressOf,
  sourceOf: addressOf,
  connect(credentials, client) {
    const sendQuery = querySender(client, credentials)
    return {
      pull: { articles: (cursor) => readArticles(sendQuery, credentials, cursor) },
      push: shopifySales(sendQuery),
    }
  },
})
