import {
  type VendorProduct,
  pageFrom,
  serveVendor,
  type SimulatedVendor,
  type VendorAnswer,
  type VendorApi,
  type VendorOptions,
  type VendorRequest,
} from './vendor-server.ts'

/**
 * The part of GraphQL that a simulated API needs: one operation with fields, arguments and variables. The answer has
 * the same structure as the query. An unknown field is an error.
 */
interface Selection {
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
  /** Arguments of each directive, by name. */
  readonly directives: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  readonly fields: readonly Selection[]
}

/** A value: a leaf, an object whose fields may need arguments, or a list. */
type GraphqlValue = string | number | boolean | null | readonly GraphqlValue[] | GraphqlObject
interface GraphqlObject {
  readonly [field: string]:
    | GraphqlValue
    | ((args: Readonly<Record<string, unknown>>, directives: Selection['directives']) => GraphqlValue)
}

class GraphqlFault extends Error {
  override name = 'GraphqlFault'
}

/** Parses the operation of a document. Throws `GraphqlFault`. */
function parseOperation(
  document: string,
  variables: Readonly<Record<string, unknown>>,
): { kind: string; fields: Selection[] } {
  const tokens =
    document
      .match(/"(?:[^"\\]|\\.)*"|\$?[A-Za-z_]\w*|-?\d+(?:\.\d+)?|[{}()[\]:!=,@]|\.\.\./g)
      ?.filter((token) => token !== ',') ?? []
  let at = 0
  const take = (expected?: string): string => {
    const token = tokens[at++]
    if (token === undefined || (expected !== undefined && token !== expected))
      throw new GraphqlFault(`syntax error, unexpected ${token ?? 'end of file'}`)
    return token
  }
  const value = (): unknown => {
    const token = take()
    if (token.startsWith('$')) return variables[token.slice(1)]
    if (token.startsWith('"')) return JSON.parse(token) as unknown
    if (token === 'true' || token === 'false') return token === 'true'
    return /^-?\d/.test(token) ? Number(token) : token
  }
  const args = (): Record<string, unknown> => {
    const read: Record<string, unknown> = {}
    if (tokens[at] !== '(') return read
    for (take('('); tokens[at] !== ')';) {
      const name = take()
      take(':')
      read[name] = value()
    }
    take(')')
    return read
  }
  const directives = (): Record<string, Record<string, unknown>> => {
    const read: Record<string, Record<string, unknown>> = {}
    while (tokens[at] === '@') {
      take('@')
      const name = take()
      read[name] = args()
    }
    return read
  }
  const fields = (): Selection[] => {
    const read: Selection[] = []
    for (take('{'); tokens[at] !== '}';)
      read.push({ name: take(), args: args(), directives: directives(), fields: tokens[at] === '{' ? fields() : [] })
    take('}')
    return read
  }
  const kind = tokens[at] === '{' ? 'query' : take()
  if (tokens[at] !== '{' && tokens[at] !== '(') take()
  if (tokens[at] === '(') while (take() !== ')');
  return { kind, fields: fields() }
}

/** Applies a selection to a value. Throws `GraphqlFault` for an unknown field. */
function select(value: GraphqlValue, fields: readonly Selection[], type: string): unknown {
  if (Array.isArray(value)) return value.map((entry: GraphqlValue) => select(entry, fields, type))
  if (typeof value !== 'object' || value === null) {
    if (fields.length > 0 && value !== null)
      throw new GraphqlFault(`Selections can't be made on scalars (field on ${type})`)
    return value
  }
  if (fields.length === 0) throw new GraphqlFault(`Field must have selections (field '${type}')`)
  const object = value as GraphqlObject
  return Object.fromEntries(
    fields.map((field) => {
      const found = Object.hasOwn(object, field.name) ? object[field.name] : undefined
      if (found === undefined) throw new GraphqlFault(`Field '${field.name}' doesn't exist on type '${type}'`)
      return [
        field.name,
        select(typeof found === 'function' ? found(field.args, field.directives) : found, field.fields, field.name),
      ]
    }),
  )
}

/**
 * Shopify's GraphQL Admin API, version 2026-07: articles, orders and refunds. Sources:
 * https://shopify.dev/docs/api/admin-graphql (ProductVariant, orderCreate, refundCreate, PageInfo),
 * …/usage/idempotent-requests, …/usage/limits (cost, THROTTLED with status 200),
 * …/authentication-authorization/client-credentials-grant.
 */
const PATH = '/admin/api/2026-07/graphql.json'
const TOKEN = 'shpat_0123456789abcdef'

const COST = {
  requestedQueryCost: 52,
  actualQueryCost: 12,
  throttleStatus: { maximumAvailable: 1_000, currentlyAvailable: 948, restoreRate: 50 },
}

/** Starts a simulated Shopify shop on a local port. */
export function shopifySystem(options: VendorOptions = {}): Promise<SimulatedVendor> {
  return serveVendor(new ShopifyApi(options), options)
}

/** The orders and refunds of one shop. */
class ShopifyApi implements VendorApi {
  readonly #pageSize: number
  readonly #orders = new Map<string, string>()
  readonly #details = new Map<string, { order: Record<string, unknown>; refunds: Record<string, unknown>[] }>()
  readonly #answered = new Map<string, GraphqlObject>()
  readonly unauthorized: VendorAnswer = {
    status: 401,
    body: { errors: '[API] Invalid API key or access token (unrecognized login or wrong password)' },
  }
  readonly rateLimited: VendorAnswer = {
    status: 200,
    body: {
      errors: [
        {
          message: 'Throttled',
          extensions: { code: 'THROTTLED', documentation: 'https://shopify.dev/api/usage/rate-limits' },
        },
      ],
      extensions: {
        cost: {
          requestedQueryCost: 152,
          actualQueryCost: null,
          throttleStatus: { maximumAvailable: 1_000, currentlyAvailable: 52, restoreRate: 50 },
        },
      },
    },
  }

  readonly #variantOf = ({ id, ean, name, priceCent, category, vat }: VendorProduct): GraphqlObject => {
    return {
      id: `gid://shopify/ProductVariant/${id}`,
      barcode: ean,
      sku: id,
      price: (priceCent / 100).toFixed(2),
      compareAtPrice: null,
      title: 'Default Title',
      displayName: `${name} - Default Title`,
      taxable: true,
      image: null,
      product: {
        id: `gid://shopify/Product/${id}`,
        title: name,
        vendor: 'Lindwerk',
        productType: category,
        tags: vat === 7 ? ['ermäßigt'] : [],
        status: 'ACTIVE',
      },
    }
  }

  constructor(options: VendorOptions) {
    this.#pageSize = options.pageSize ?? 3
  }

  credentials(baseUrl: string): Record<string, string> {
    return {
      baseUrl,
      shop: 'hafenkante.myshopify.com',
      clientId: 'client',
      clientSecret: 'secret',
      reducedVatTag: 'ermäßigt',
    }
  }

  isAuthorized({ headers, path }: VendorRequest): boolean {
    return path === '/admin/oauth/access_token' || headers['x-shopify-access-token'] === TOKEN
  }

  serve(request: VendorRequest, vendor: SimulatedVendor): VendorAnswer {
    if (request.path === '/admin/oauth/access_token') {
      const form = new URLSearchParams(request.text)
      const isKnown =
        form.get('grant_type') === 'client_credentials' &&
        form.get('client_id') === 'client' &&
        form.get('client_secret') === 'secret'
      return isKnown
        ? { status: 200, body: { access_token: TOKEN, scope: 'read_products,write_orders', expires_in: 86_399 } }
        : { status: 400, body: { error: 'invalid_client' } }
    }
    if (request.path !== PATH || request.method !== 'POST') return { status: 404, body: { errors: 'Not Found' } }
    return this.#graphql(request, vendor)
  }

  #root(vendor: SimulatedVendor): GraphqlObject {
    return {
      shop: { name: 'Hafenkante', currencyCode: 'EUR', taxesIncluded: true },
      productVariants: ({ first, after }) => {
        const from =
          after === null || after === undefined ? 0 : Number(Buffer.from(String(after), 'base64').toString().slice(1))
        if (Number.isNaN(from)) throw new GraphqlFault(`Invalid cursor for current pagination sort.`)
        const { page, next } = pageFrom(vendor.goods.products, from, Math.min(this.#pageSize, Number(first ?? 50)))
        const endCursor = page.length === 0 ? null : Buffer.from(`p${from + page.length}`).toString('base64')
        return {
          nodes: page.map(this.#variantOf),
          pageInfo: { hasNextPage: next !== undefined, hasPreviousPage: from > 0, startCursor: null, endCursor },
        }
      },
      orders: ({ query }) => {
        const id = /^source_identifier:"(.*)"$/.exec(String(query))?.[1] ?? ''
        const found = this.#orders.get(id)
        return { nodes: found === undefined ? [] : [{ id: found }], pageInfo: { hasNextPage: false, endCursor: null } }
      },
      order: ({ id }) => this.#orderOf(String(id)),
      refundCreate: ({ input }, directives) =>
        this.#createRefund(input as Record<string, unknown>, directives['idempotent']?.['key'], vendor),
      orderCreate: ({ order }) => this.#createOrder(order as Record<string, unknown>, vendor),
    }
  }

  #createOrder(order: Record<string, unknown>, vendor: SimulatedVendor): GraphqlObject {
    const lines = Array.isArray(order['lineItems'])
      ? (order['lineItems'] as { title?: string; quantity?: number }[])
      : []
    const wrong = lines.findIndex(({ quantity }) => (quantity ?? 0) > 9_999)
    if (lines.length === 0 || wrong >= 0) {
      const field = lines.length === 0 ? ['order', 'lineItems'] : ['order', 'lineItems', String(wrong), 'quantity']
      return { order: null, userErrors: [{ field, message: 'is invalid' }] }
    }
    const id = `gid://shopify/Order/${5_001 + this.#orders.size}`
    this.#orders.set(String(order['sourceIdentifier'] ?? id), id)
    this.#details.set(id, { order, refunds: [] })
    vendor.written.push({ kind: 'transactions', key: String(order['sourceIdentifier']), record: order })
    return { order: { id, name: `#${this.#orders.size}` }, userErrors: [] }
  }

  #orderOf(id: string): GraphqlObject | null {
    const known = this.#details.get(id)
    if (!known) return null
    const lines = known.order['lineItems'] as { title: string; sku?: string; quantity: number }[]
    return {
      id,
      transactions: () => [{ id: `${id}/sale`, kind: 'SALE', status: 'SUCCESS', gateway: 'manual' }],
      refunds: () => known.refunds.map(({ note }) => ({ id: `${id}/refund`, note: String(note) })),
      lineItems: () => ({
        nodes: lines.map(({ title, sku, quantity }, i) => ({
          id: `${id}/line/${i}`,
          title,
          sku: sku ?? null,
          quantity,
        })),
      }),
    }
  }

  /** Refunds an order, once for each idempotency key. Shopify rejects a call without a key. */
  #createRefund(input: Record<string, unknown>, key: unknown, vendor: SimulatedVendor): GraphqlObject {
    if (typeof key !== 'string' || key === '')
      throw new GraphqlFault('The @idempotent directive is required for this mutation but was not provided.')
    const before = this.#answered.get(key)
    if (before) return before
    const refuse = (field: string, message: string) => ({ refund: null, userErrors: [{ field: [field], message }] })
    const known = this.#details.get(String(input['orderId']))
    if (!known) return refuse('orderId', 'Order does not exist')
    const lines = known.order['lineItems'] as { quantity: number; priceSet: { shopMoney: { amount: string } } }[]
    const [payment] = (input['transactions'] ?? []) as Record<string, unknown>[]
    const cents = (amount: unknown) => Math.round(Number(amount) * 100)
    const back = known.refunds.reduce(
      (sum, refund) => sum + cents((refund['transactions'] as Record<string, unknown>[])[0]?.['amount']),
      0,
    )
    const total = lines.reduce((sum, line) => sum + line.quantity * cents(line.priceSet.shopMoney.amount), 0)
    if (
      payment?.['kind'] !== 'REFUND' ||
      typeof payment['gateway'] !== 'string' ||
      payment['orderId'] !== input['orderId']
    )
      return refuse('transactions', 'Transaction is invalid')
    if (payment['parentId'] !== `${String(input['orderId'])}/sale`) return refuse('transactions', 'Parent is invalid')
    if (back + cents(payment['amount']) > total)
      return refuse('transactions', 'Cannot refund more money than was captured')
    const items = (input['refundLineItems'] ?? []) as { lineItemId: string; quantity: number; restockType?: string }[]
    const isUnknown = items.some(({ lineItemId, quantity }) => {
      const line = lines[Number(lineItemId.split('/').at(-1))]
      return !lineItemId.startsWith(`${String(input['orderId'])}/line/`) || !line || quantity > line.quantity
    })
    if (isUnknown) return refuse('refundLineItems', 'Quantity cannot refund more items than were purchased')
    known.refunds.push(input)
    vendor.written.push({ kind: 'refunds', key, record: input })
    const answer = { refund: { id: `${String(input['orderId'])}/refund` }, userErrors: [] }
    this.#answered.set(key, answer)
    return answer
  }

  #graphql(request: VendorRequest, vendor: SimulatedVendor): VendorAnswer {
    const extensions = { cost: COST }
    try {
      const { fields } = parseOperation(
        String(request.json['query'] ?? ''),
        (request.json['variables'] ?? {}) as Record<string, unknown>,
      )
      return { status: 200, body: { data: select(this.#root(vendor), fields, 'QueryRoot'), extensions } }
    } catch (error) {
      if (!(error instanceof GraphqlFault)) throw error
      return {
        status: 200,
        body: {
          errors: [
            { message: error.message, locations: [{ line: 1, column: 1 }], extensions: { code: 'undefinedField' } },
          ],
        },
      }
    }
  }
}
