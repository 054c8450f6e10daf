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
 * Square's Connect API v2, Square-Version 2026-09-16: catalogue, orders and external payments. Sources:
 * https://developer.squareup.com/reference/square (ListCatalog, CreateOrder, CreatePayment, ListPayments,
 * RefundPayment) and https://developer.squareup.com/docs/build-basics/general-considerations/handling-errors. Tests use
 * Square's own client.
 */
const TOKEN = 'EAAA0123456789'
const LOCATION = 'L1HAFEN'

type Row = Record<string, unknown>
type Objects = readonly Row[]

/** Starts a simulated Square seller on a local port. */
export function squareSystem(options: VendorOptions = {}): Promise<SimulatedVendor> {
  return serveVendor(new SquareApi(options), options)
}

/** The orders, payments and refunds of one seller. */
class SquareApi implements VendorApi {
  readonly #pageSize: number
  readonly #payments: (Row & { id: string; refund_ids: string[] })[] = []
  readonly #refunds: Row[] = []
  readonly #answered = new Map<string, { text: string; answer: VendorAnswer }>()
  #count = 0
  readonly unauthorized: VendorAnswer = {
    status: 401,
    body: {
      errors: [
        { category: 'AUTHENTICATION_ERROR', code: 'UNAUTHORIZED', detail: 'This request could not be authorized.' },
      ],
    },
  }
  readonly rateLimited: VendorAnswer = {
    status: 429,
    body: { errors: [{ category: 'RATE_LIMIT_ERROR', code: 'RATE_LIMITED', detail: 'Too many requests.' }] },
  }

  constructor(options: VendorOptions) {
    this.#pageSize = options.pageSize ?? 3
  }

  credentials(baseUrl: string): Record<string, string> {
    return { baseUrl, accessToken: TOKEN, locationId: LOCATION }
  }

  isAuthorized({ headers }: VendorRequest): boolean {
    return headers['authorization'] === `Bearer ${TOKEN}` && /^\d{4}-\d{2}-\d{2}$/.test(headers['square-version'] ?? '')
  }

  serve(request: VendorRequest, vendor: SimulatedVendor): VendorAnswer {
    const what = `${request.method} ${request.path}`
    if (what === 'GET /v2/catalog/list') return this.#list(vendor, request.query)
    if (what === 'POST /v2/orders') return this.#once(request, () => this.#createOrder(request, vendor))
    if (what === 'GET /v2/payments') return this.#listPayments(request.query)
    if (what === 'POST /v2/refunds') return this.#once(request, () => this.#refundPayment(request, vendor))
    const refund = this.#refunds.find(({ id }) => what === `GET /v2/refunds/${String(id)}`)
    if (refund) return { status: 200, body: { refund } }
    if (what === 'POST /v2/payments') return this.#once(request, () => this.#createPayment(request))
    return {
      status: 404,
      body: { errors: [{ category: 'INVALID_REQUEST_ERROR', code: 'NOT_FOUND', detail: 'Resource not found.' }] },
    }
  }

  #list(vendor: SimulatedVendor, query: URLSearchParams): VendorAnswer {
    const types = (query.get('types') ?? 'ITEM,CATEGORY,TAX').split(',')
    const all = [...objectsOf(vendor.goods.products)].filter((object) => types.includes(String(object['type'])))
    const cursor = query.get('cursor')
    const from = cursor === null ? 0 : Number(Buffer.from(cursor, 'base64').toString())
    if (!Number.isInteger(from)) return refused('INVALID_CURSOR', 'Invalid cursor.', 'cursor')
    const { page, next } = pageFrom(all, from, this.#pageSize)
    return {
      status: 200,
      body: {
        ...(page.length > 0 && { objects: page }),
        ...(next !== undefined && { cursor: Buffer.from(String(next)).toString('base64') }),
      },
    }
  }

  #once(request: VendorRequest, carryOut: () => VendorAnswer): VendorAnswer {
    const key = request.json['idempotency_key']
    if (typeof key !== 'string' || key.length === 0 || key.length > 45)
      return refused('VALUE_TOO_LONG', 'Field must not be greater than 45 length', 'idempotency_key')
    const before = this.#answered.get(`${request.path} ${key}`)
    if (before)
      return before.text === request.text
        ? before.answer
        : refused(
            'IDEMPOTENCY_KEY_REUSED',
            'The idempotency key can only be retried with the same request data.',
            'idempotency_key',
          )
    const answer = carryOut()
    if (answer.status === 200) this.#answered.set(`${request.path} ${key}`, { text: request.text, answer })
    return answer
  }

  #createOrder(request: VendorRequest, vendor: SimulatedVendor): VendorAnswer {
    const order = (request.json['order'] ?? {}) as {
      location_id?: string
      reference_id?: string
      line_items?: { quantity: string; base_price_money: { amount: number } }[]
    }
    if (order.location_id !== LOCATION) return refused('INVALID_VALUE', 'The location is unknown.', 'order.location_id')
    const lines = order.line_items ?? []
    const wrong = lines.findIndex(({ quantity }) => typeof quantity !== 'string')
    if (wrong >= 0) return refused('EXPECTED_STRING', 'Expected a string value.', `order.line_items[${wrong}].quantity`)
    const total = lines.reduce(
      (sum, { quantity, base_price_money }) => sum + Number(quantity) * base_price_money.amount,
      0,
    )
    vendor.written.push({
      kind: 'transactions',
      key: String(request.json['idempotency_key']),
      record: order as Record<string, unknown>,
    })
    const made = {
      ...order,
      id: `order_${++this.#count}`,
      state: 'OPEN',
      version: 1,
      total_money: { amount: total, currency: 'EUR' },
    }
    return { status: 200, body: { order: made } }
  }

  #createPayment({ json }: VendorRequest): VendorAnswer {
    if (json['source_id'] !== 'EXTERNAL') return refused('INVALID_VALUE', 'Only external payments here.', 'source_id')
    if (typeof json['external_details'] !== 'object')
      return refused('MISSING_REQUIRED_PARAMETER', 'Missing required parameter.', 'external_details')
    const payment = {
      id: `payment_${++this.#count}`,
      status: 'COMPLETED',
      source_type: 'EXTERNAL',
      amount_money: json['amount_money'],
      external_details: json['external_details'],
      order_id: json['order_id'],
      location_id: json['location_id'],
      refund_ids: [],
    }
    this.#payments.push(payment)
    return { status: 200, body: { payment } }
  }

  /** Lists only payments of exactly the requested amount, one on each page. */
  #listPayments(query: URLSearchParams): VendorAnswer {
    if (query.get('location_id') !== LOCATION)
      return refused('INVALID_VALUE', 'The location is unknown.', 'location_id')
    const found = this.#payments.filter(
      ({ amount_money }) => String((amount_money as Row)['amount']) === query.get('total'),
    )
    const { page, next } = pageFrom(found, Number(query.get('cursor') ?? 0), 1)
    return { status: 200, body: { payments: page, ...(next !== undefined && { cursor: String(next) }) } }
  }

  #refundPayment({ json }: VendorRequest, vendor: SimulatedVendor): VendorAnswer {
    const payment = this.#payments.find(({ id }) => id === json['payment_id'])
    if (!payment) return refused('NOT_FOUND', 'The payment is unknown.', 'payment_id')
    const { amount, currency } = (json['amount_money'] ?? {}) as { amount?: unknown; currency?: unknown }
    const paid = payment['amount_money'] as { amount: number; currency: string }
    const back = this.#refunds
      .filter((refund) => refund['payment_id'] === payment.id)
      .reduce((sum, refund) => sum + Number((refund['amount_money'] as Row)['amount']), 0)
    if (typeof amount !== 'number' || !Number.isInteger(amount) || amount < 1 || currency !== paid.currency)
      return refused('INVALID_VALUE', 'The amount is not valid.', 'amount_money')
    if (back + amount > paid.amount)
      return refused(
        'REFUND_AMOUNT_INVALID',
        'The requested refund amount exceeds the amount available.',
        'amount_money.amount',
      )
    const refund = {
      id: `refund_${++this.#count}`,
      status: 'COMPLETED',
      payment_id: payment.id,
      amount_money: json['amount_money'],
      reason: json['reason'],
    }
    this.#refunds.push(refund)
    payment.refund_ids.push(refund.id)
    vendor.written.push({ kind: 'refunds', key: String(json['idempotency_key']), record: json })
    return { status: 200, body: { refund } }
  }
}

function refused(code: string, detail: string, field: string): VendorAnswer {
  return { status: 400, body: { errors: [{ category: 'INVALID_REQUEST_ERROR', code, detail, field }] } }
}

function* objectsOf(products: readonly VendorProduct[]): Generator<Objects[number]> {
  const common = {
    updated_at: '2026-11-20T08:00:00Z',
    version: 1_700_000_000_000,
    is_deleted: false,
    present_at_all_locations: true,
  }
  for (const category of new Set(products.map((p) => p.category)))
    yield { ...common, type: 'CATEGORY', id: `CAT_${category}`, category_data: { name: category } }
  for (const rate of new Set(products.map((p) => p.vat))) {
    yield {
      ...common,
      type: 'TAX',
      id: `TAX_${rate}`,
      tax_data: {
        name: 'MwSt',
        percentage: `${rate}.0`,
        inclusion_type: 'INCLUSIVE',
        calculation_phase: 'TAX_SUBTOTAL_PHASE',
        enabled: true,
      },
    }
  }
  for (const { id, ean, name, priceCent, vat, category } of products) {
    const item_variation_data = {
      item_id: `ITEM_${id}`,
      name: 'Regular',
      sku: id,
      ...(ean !== null && { upc: ean }),
      pricing_type: 'FIXED_PRICING',
      price_money: { amount: priceCent, currency: 'EUR' },
      ordinal: 1,
    }
    const variation = { ...common, type: 'ITEM_VARIATION', id: `VAR_${id}`, item_variation_data }
    const item_data = {
      name,
      tax_ids: [`TAX_${vat}`],
      categories: [{ id: `CAT_${category}`, ordinal: 1 }],
      reporting_category: { id: `CAT_${category}`, ordinal: 1 },
      product_type: 'REGULAR',
      is_archived: false,
      variations: [variation],
    }
    yield { ...common, type: 'ITEM', id: `ITEM_${id}`, item_data }
  }
}
