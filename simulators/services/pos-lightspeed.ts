import {
  serveVendor,
  type SimulatedVendor,
  type VendorApi,
  type VendorOptions,
  type VendorAnswer,
  type VendorRequest,
  type VendorGoods,
} from './vendor-server.ts'

/**
 * Sales of Lightspeed Retail X-Series, API 2026-04. Sources:
 * https://x-series-api.lightspeedhq.com/v2026.04/docs/sales_101, …/v2026.04/docs/sales_returns, …/reference/createsale
 * and the vendor's OpenAPI document (SaleRequest, SaleUpdateRequest, Sale).
 */
const USER = '020b2c2a-4661-11f0-e88b-1afde45e0728'
const REGISTER = 'b1e198a9-f019-11e3-a0f5-b8ca3a64f8f4'
const PAYMENT_TYPE = 'b1e1d70e-f019-11e3-a0f5-b8ca3a64f8f4'
const TAX_IDS: Readonly<Record<string, number>> = {
  'b1d192bc-f019-11e3-a0f5-b8ca3a64f8f4': 19,
  'b1d192bc-f019-11e3-a0f5-b8ca3a64f8f5': 7,
}

/** The additional credentials that a client needs to write sales. */
const LIGHTSPEED_WRITING = { registerId: REGISTER, userId: USER, paymentTypeId: PAYMENT_TYPE }

/** The id of a product in the list of products. */
const lightspeedProductId = (id: string) => `0242ac12-0002-11ee-8000-${id.padStart(12, '0')}`

type Row = Record<string, unknown>
interface Line {
  id?: string
  product?: { id?: string }
  quantity?: unknown
  pricing?: { price?: unknown }
  tax?: { id?: string; amount?: unknown }
}
interface StoredSale {
  id: string
  state: string
  source: Row
  isReturnOf: string | undefined
  lines: { id: string; product_id: string; quantity: number }[]
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const refuse = (message: string): VendorAnswer => ({ status: 422, body: { error: 'Unprocessable Entity', message } })
const NOT_FOUND: VendorAnswer = { status: 404, body: { error: 'Not Found' } }

/** Reason why a sale is invalid, or undefined. `sign` is -1 for a return. Amounts are in EUR, prices without tax. */
function wrongWith(json: Row, goods: VendorGoods, sign: 1 | -1): string | undefined {
  const source = (json['source'] ?? {}) as Row
  if (source['author_id'] !== USER) return 'source.author_id is required'
  if (source['register_id'] !== REGISTER) return 'source.register_id is unknown'
  if (json['state'] !== 'closed') return 'state is not one that this simulator knows'
  const date = json['date']
  if (date !== undefined && !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/.test(String(date)))
    return 'date is not RFC 3339'
  let total = 0
  for (const { product, quantity, pricing, tax } of (json['line_items'] ?? []) as Line[]) {
    if (!goods.products.some(({ id }) => lightspeedProductId(id) === product?.id)) return 'product.id is unknown'
    const rate = TAX_IDS[tax?.id ?? '']
    if (rate === undefined) return 'tax.id is unknown'
    if (typeof quantity !== 'number' || quantity * sign <= 0) return 'quantity has the wrong sign'
    if (typeof pricing?.price !== 'number' || typeof tax?.amount !== 'number')
      return 'pricing.price and tax.amount are required'
    if (Math.abs((pricing.price * rate) / 100 - tax.amount) > 0.001) return 'tax.amount is not the tax of pricing.price'
    total += quantity * (pricing.price + tax.amount)
  }
  const payments = (json['payments'] ?? []) as { type?: { config_id?: string }; amount?: unknown }[]
  if (payments.some(({ type }) => type?.config_id !== PAYMENT_TYPE)) return 'payments.type.config_id is unknown'
  const paid = payments.reduce((sum, { amount }) => sum + (typeof amount === 'number' ? amount : Number.NaN), 0)
  return Math.abs(paid - total) < 0.005 ? undefined : `the payments are ${paid}, the sale is ${total}`
}

/** Handles requests about sales; undefined for other requests. */
function lightspeedSalesDesk(): (request: VendorRequest, vendor: SimulatedVendor) => VendorAnswer | undefined {
  const sales = new Map<string, StoredSale>()
  let count = 0
  const shown = ({ id, state, source, isReturnOf, lines }: StoredSale) => ({
    id,
    state,
    source,
    line_items: lines,
    return: {
      is_return: isReturnOf !== undefined,
      original_sale_id: isReturnOf ?? null,
      return_sale_ids: [...sales.values()].filter((sale) => sale.isReturnOf === id).map((sale) => sale.id),
    },
  })
  const linesOf = (json: Row) =>
    ((json['line_items'] ?? []) as Line[]).map((line) => ({
      id: line.id ?? `00000000-0000-4000-8000-${String(++count).padStart(12, '0')}`,
      product_id: line.product?.id ?? '',
      quantity: Number(line.quantity),
    }))
  const create = (json: Row, vendor: SimulatedVendor): VendorAnswer => {
    const id = json['id']
    if (typeof id !== 'string' || !UUID.test(id)) return refuse('id is not a UUID')
    if (sales.has(id)) return refuse('a sale with this id exists')
    const wrong = wrongWith(json, vendor.goods, 1)
    if (wrong !== undefined) return refuse(wrong)
    sales.set(id, { id, state: 'closed', source: json['source'] as Row, isReturnOf: undefined, lines: linesOf(json) })
    vendor.written.push({ kind: 'transactions', key: id, record: json })
    return { status: 200, body: { data: shown(sales.get(id) as StoredSale) } }
  }
  const park = (of: StoredSale): VendorAnswer => {
    if (of.state !== 'closed' || of.isReturnOf !== undefined) return refuse('only a closed sale can be returned')
    const id = `11111111-0000-4000-8000-${String(++count).padStart(12, '0')}`
    const lines = of.lines.map((line) => ({
      ...line,
      id: `${id.slice(0, -4)}${++count + 1_000}`,
      quantity: -line.quantity,
    }))
    sales.set(id, { id, state: 'parked', source: {}, isReturnOf: of.id, lines })
    return { status: 200, body: { data: shown(sales.get(id) as StoredSale) } }
  }
  const close = (sale: StoredSale, json: Row, vendor: SimulatedVendor): VendorAnswer => {
    if (sale.state !== 'parked') return refuse('a closed sale cannot be changed')
    const wrong = wrongWith(json, vendor.goods, -1)
    if (wrong !== undefined) return refuse(wrong)
    const unknown = linesOf(json).find(({ id }) => !sale.lines.some((line) => line.id === id))
    if (unknown) return refuse('a line is not one of the parked return')
    Object.assign(sale, { state: 'closed', source: json['source'], lines: linesOf(json) })
    vendor.written.push({ kind: 'refunds', key: sale.id, record: { ...json, return_for: sale.isReturnOf } })
    return { status: 200, body: { data: shown(sale) } }
  }
  return ({ method, path, json }, vendor) => {
    if (method === 'GET' && path === '/api/2.0/taxes') {
      const data = Object.entries(TAX_IDS).map(([id, rate]) => ({
        id,
        name: `${rate} %`,
        rates: [{ rate: rate / 100 }],
      }))
      return { status: 200, body: { data } }
    }
    if (!path.startsWith('/api/2026-04/sales')) return undefined
    const [, , , , id, , action] = path.split('/')
    if (id === undefined) return method === 'POST' ? create(json, vendor) : NOT_FOUND
    const sale = sales.get(id)
    if (!sale) return NOT_FOUND
    if (method === 'GET') return { status: 200, body: { data: shown(sale) } }
    if (method === 'POST' && action === 'return') return park(sale)
    return method === 'PUT' ? close(sale, json, vendor) : NOT_FOUND
  }
}

/**
 * Lightspeed Retail X-Series, API 2026-04: products, sales and returns. Source: https://x-series-api.lightspeedhq.com
 * (pagination by version, rate limiting with a date in Retry-After, product codes).
 */
const TOKEN = 'lsxs_pt_0123456789'

/** Starts a simulated Lightspeed shop on a local port. */
export function lightspeedSystem(options: VendorOptions = {}): Promise<SimulatedVendor> {
  const pageSize = options.pageSize ?? 3
  const salesDesk = lightspeedSalesDesk()
  const api: VendorApi = {
    credentials: (baseUrl) => ({ baseUrl, domainPrefix: 'hafenkante', accessToken: TOKEN, ...LIGHTSPEED_WRITING }),
    isAuthorized: ({ headers }) => headers['authorization'] === `Bearer ${TOKEN}`,
    unauthorized: { status: 401, body: { error: 'Unauthorized', message: 'Not authorized' } },
    // A date in the past, so that clients wait only a moment.
    rateLimited: {
      status: 429,
      body: { error: 'Too Many Requests', message: 'Rate limiting enforced' },
      headers: { 'retry-after': 'Wed, 15 Jul 2020 15:04:05 GMT' },
    },
    serve(request, vendor) {
      const { method, path, query } = request
      const answer = salesDesk(request, vendor)
      if (answer) return answer
      if (method !== 'GET' || path !== '/api/2026-04/products') return { status: 404, body: { error: 'Not Found' } }
      const after = Number(query.get('after') ?? 0)
      const all = vendor.goods.products.map((product, i) => ({ product, version: 9_000 + i * 3 }))
      const page = all
        .filter(({ version }) => version > after)
        .slice(0, Math.min(pageSize, Number(query.get('page_size') ?? 100)))
      const data = page.map(({ product: { id, ean, name, priceCent, vat, category }, version }) => ({
        id: lightspeedProductId(id),
        name,
        variant_name: name,
        sku: `S-${id}`,
        product_codes:
          ean === null
            ? []
            : [
                { id, type: 'CUSTOM', code: `K${id}` },
                { id, type: 'EAN', code: ean },
              ],
        price_including_tax: priceCent / 100,
        price_excluding_tax: Math.round((priceCent / (100 + vat)) * 1e5) / 1e5,
        brand: { id: 'b', name: 'Lindwerk' },
        product_category: { id: 'c', name: category },
        image_url: null,
        has_variants: false,
        is_active: true,
        deleted_at: null,
        version,
      }))
      return {
        status: 200,
        body: { data, version: { min: page[0]?.version ?? 0, max: page.at(-1)?.version ?? 0 } },
        headers: { 'x-ratelimit-limit': '350', 'x-ratelimit-remaining': '349' },
      }
    },
  }
  return serveVendor(api, options)
}
