import {
  serveVendor,
  type SimulatedVendor,
  type VendorApi,
  type VendorOptions,
  type VendorAnswer,
  type VendorRequest,
} from './vendor-server.ts'

/**
 * Orders of Clover's REST API v3. Sources: https://docs.clover.com/dev/reference (orderCreateOrder, orderGetOrders with
 * its filters, orderUpdateOrder, orderCreatePaymentForOrder) and https://docs.clover.com/docs/creating-custom-orders.
 */
const TENDER = 'TENDERUNTAG01'

/** The additional credentials that a client needs to write sales. */
const CLOVER_WRITING = { tenderId: TENDER }

type Row = Record<string, unknown>
interface Order {
  id: string
  fields: Row
  lines: Row[]
  payments: Row[]
}

const CREATE_FIELDS = new Set([
  'taxRemoved',
  'note',
  'title',
  'state',
  'testMode',
  'manualTransaction',
  'groupLineItems',
  'orderType',
])
const LINE_LIMIT = 3_000
const RATES = [19, 7]

const refuse = (message: string): VendorAnswer => ({ status: 400, body: { message } })
const isCents = (value: unknown, least: number) =>
  typeof value === 'number' && Number.isInteger(value) && value >= least

function isLine({ name, price, taxRates }: Row): boolean {
  const rates = (taxRates ?? []) as Row[]
  return (
    typeof name === 'string' && isCents(price, 0) && rates.every(({ id }) => RATES.some((rate) => id === `T_${rate}`))
  )
}

/** Handles requests about orders; undefined for other requests. */
function cloverOrderDesk(base: string): (request: VendorRequest, vendor: SimulatedVendor) => VendorAnswer | undefined {
  const orders: Order[] = []

  function list(query: URLSearchParams): VendorAnswer {
    const title = /^title=(.*)$/.exec(query.get('filter') ?? '')?.[1]
    const expand = (query.get('expand') ?? '').split(',')
    const found = orders.filter(({ fields }) => title === undefined || fields['title'] === title)
    const elements = found.map(({ id, fields, payments }) => ({
      id,
      ...fields,
      ...(expand.includes('payments') && { payments: { elements: payments } }),
    }))
    return { status: 200, body: { elements } }
  }

  function create(json: Row): VendorAnswer {
    const unknown = Object.keys(json).find((field) => !CREATE_FIELDS.has(field))
    if (unknown !== undefined) return refuse(`${unknown} is not a valid field`)
    const order = { id: `ORDER${String(orders.length + 1).padStart(8, '0')}`, fields: json, lines: [], payments: [] }
    orders.push(order)
    return { status: 200, body: { id: order.id, ...json } }
  }

  function addLines(order: Order, json: Row): VendorAnswer {
    const items = (json['items'] ?? []) as Row[]
    if (items.length === 0 || order.lines.length + items.length > LINE_LIMIT)
      return refuse('an order has 1 to 3,000 line items')
    if (!items.every(isLine)) return refuse('a line item needs name, price in cents and tax rates of the merchant')
    order.lines.push(...items)
    return { status: 200, body: items.map((item, i) => ({ id: `LINE${i}`, ...item })) }
  }

  function pay(order: Order, json: Row, vendor: SimulatedVendor): VendorAnswer {
    const sum = order.lines.reduce((total, { price }) => total + Number(price), 0)
    if ((json['tender'] as Row | undefined)?.['id'] !== TENDER) return refuse('the tender is unknown')
    if (!isCents(json['amount'], 1)) return refuse('the amount must be positive, in cents')
    if (order.fields['total'] !== sum || json['amount'] !== sum)
      return refuse('the total is not that of the line items')
    order.payments.push({ id: `PAY${orders.length}`, ...json })
    vendor.written.push({
      kind: 'transactions',
      key: String(order.fields['title']),
      record: { ...order.fields, lineItems: [...order.lines], payment: json },
    })
    return { status: 200, body: { id: `PAY${orders.length}`, ...json } }
  }

  return ({ method, path, query, json }, vendor) => {
    if (!path.startsWith(`${base}/`)) return undefined
    const [kind, id, part] = path.slice(base.length + 1).split('/')
    if (method === 'GET' && kind === 'tax_rates')
      return {
        status: 200,
        body: { elements: RATES.map((rate) => ({ id: `T_${rate}`, name: 'MwSt', rate: rate * 100_000 })) },
      }
    if (kind !== 'orders') return undefined
    if (id === undefined) return method === 'GET' ? list(query) : create(json)
    const order = orders.find((known) => known.id === id)
    if (!order) return { status: 404, body: { message: 'Not Found' } }
    if (method === 'GET' && part === 'line_items') {
      const from = Number(query.get('offset') ?? 0)
      return { status: 200, body: { elements: order.lines.slice(from, from + Number(query.get('limit') ?? 100)) } }
    }
    if (method !== 'POST') return undefined
    if (part === 'bulk_line_items') return addLines(order, json)
    if (part === 'payments') return pay(order, json, vendor)
    if (part !== undefined) return undefined
    Object.assign(order.fields, json)
    return { status: 200, body: { id, ...order.fields } }
  }
}

/**
 * Clover's REST API v3: items and orders. Source: https://docs.clover.com (get all inventory items with expand, limit
 * and offset; VAT merchants' prices; API usage and rate limits).
 */
const TOKEN = '0a1b2c3d-0000-1111-2222-333344445555'
const MERCHANT = 'HAFENKANTE001'

/** Starts a simulated Clover merchant on a local port. */
export function cloverSystem(options: VendorOptions = {}): Promise<SimulatedVendor> {
  const pageSize = options.pageSize ?? 3
  const orderDesk = cloverOrderDesk(`/v3/merchants/${MERCHANT}`)
  const api: VendorApi = {
    credentials: (baseUrl) => ({ baseUrl, merchantId: MERCHANT, accessToken: TOKEN, ...CLOVER_WRITING }),
    isAuthorized: ({ headers }) => headers['authorization'] === `Bearer ${TOKEN}`,
    unauthorized: { status: 401, body: { message: '401 Unauthorized' } },
    rateLimited: {
      status: 429,
      body: { message: '429 Too Many Requests' },
      headers: { 'x-ratelimit-tokenlimit': '16' },
    },
    serve(request, vendor) {
      const { method, path, query } = request
      const answer = orderDesk(request, vendor)
      if (answer) return answer
      if (method !== 'GET' || path !== `/v3/merchants/${MERCHANT}/items`)
        return { status: 404, body: { message: 'Not Found' } }
      const limit = Math.min(Number(query.get('limit') ?? 100), pageSize)
      const offset = Number(query.get('offset') ?? 0)
      const expand = (query.get('expand') ?? '').split(',')
      const elements = vendor.goods.products
        .slice(offset, offset + limit)
        .map(({ id, ean, name, priceCent, vat, category }) => ({
          id: `CLV${id}`,
          hidden: false,
          available: true,
          name,
          ...(ean !== null && { code: ean }),
          sku: id,
          price: priceCent,
          priceType: 'FIXED',
          defaultTaxRates: false,
          isRevenue: true,
          ...(expand.includes('categories') && { categories: { elements: [{ id: `C_${category}`, name: category }] } }),
          ...(expand.includes('taxRates') && {
            taxRates: { elements: [{ id: `T_${vat}`, name: 'MwSt', rate: vat * 100_000, isDefault: false }] },
          }),
        }))
      return { status: 200, body: { elements, href: `${vendor.baseUrl}${path}?limit=${limit}` } }
    },
  }
  return serveVendor(api, options)
}
