import {
  pageFrom,
  serveVendor,
  type SimulatedVendor,
  type VendorAnswer,
  type VendorApi,
  type VendorOptions,
  type VendorRequest,
} from './vendor-server.ts'

/**
 * A merchant's own till or ERP system, as docs/reference/integrations.md describes it:
 *
 *     GET /articles · /stock · /orders · /suppliers ?cursor=   POST /{dataType} {records[]}
 *
 * The system executes requests with the same Idempotency-Key only once, and rejects records without an id.
 */
export function genericSystem(options: VendorOptions = {}): Promise<SimulatedVendor> {
  return serveVendor(new GenericApi(options), options)
}

/** The lists of one merchant. */
class GenericApi implements VendorApi {
  readonly #storedAnswers = new Map<string, VendorAnswer>()
  readonly #pageSize: number
  readonly unauthorized: VendorAnswer = { status: 401, body: { error: 'unknown key' } }
  readonly rateLimited: VendorAnswer = { status: 429, body: { error: 'slower' }, headers: { 'retry-after': '2' } }

  constructor(options: VendorOptions) {
    this.#pageSize = options.pageSize ?? 3
  }

  credentials(baseUrl: string): Record<string, string> {
    return { baseUrl: `${baseUrl}/api`, token: 'token-of-the-shop' }
  }

  isAuthorized({ headers }: VendorRequest): boolean {
    return (
      headers['authorization'] === 'Bearer token-of-the-shop' ||
      headers['authorization'] === `Basic ${Buffer.from('untag:geheim').toString('base64')}`
    )
  }

  serve(request: VendorRequest, vendor: SimulatedVendor): VendorAnswer {
    const { products, orders, suppliers } = vendor.goods
    const kind = /^\/api\/([A-Za-z0-9_-]+)$/.exec(request.path)?.[1]
    if (kind === undefined) return { status: 404, body: { error: 'no such path' } }
    if (request.method === 'POST') return this.#write(kind, request, vendor)
    if (kind === 'articles') {
      const articles = products.map(({ id, ean, name, priceCent, vat, category }) => ({
        article_number: ean,
        article_name: name,
        sell_price: (priceCent / 100).toFixed(2).replace('.', ','),
        tax_rate: vat,
        category,
        unit: 'Stück',
        external_id: id,
        receipt_number: 17,
        revenue: 99.5,
      }))
      return this.#read(articles, kind, request.query)
    }
    if (kind === 'stock')
      return this.#read(
        products.map(({ ean, stock }) => ({ article_number: ean, quantity: stock })),
        kind,
        request.query,
      )
    if (kind === 'orders')
      return this.#read(
        orders.map(({ id, supplierId, orderedAt, totalCent, status }) => ({
          external_id: id,
          supplier_id: supplierId,
          ordered_at: orderedAt,
          total: totalCent / 100,
          status,
        })),
        kind,
        request.query,
      )
    if (kind === 'suppliers')
      return this.#read(
        suppliers.map(({ id, name, email }) => ({ external_id: Number(id), supplier_name: name, email })),
        kind,
        request.query,
      )
    return { status: 404, body: { error: 'no such path' } }
  }

  #read(list: readonly object[], name: string, query: URLSearchParams): VendorAnswer {
    const cursor = query.get('cursor')
    const from = cursor === null ? 0 : Number(/^c(\d+)$/.exec(cursor)?.[1] ?? Number.NaN)
    if (Number.isNaN(from)) return { status: 400, body: { error: 'no such cursor' } }
    const { page, next } = pageFrom(list, from, this.#pageSize)
    return { status: 200, body: { [name]: page, ...(next !== undefined && { nextCursor: `c${next}` }) } }
  }

  #write(kind: string, request: VendorRequest, vendor: SimulatedVendor): VendorAnswer {
    const key = request.headers['idempotency-key'] ?? ''
    const before = this.#storedAnswers.get(key)
    if (before) return before
    const records = (Array.isArray(request.json['records']) ? request.json['records'] : []) as Record<string, unknown>[]
    const errors: object[] = []
    for (const [index, record] of records.entries()) {
      // A purchase as the API returns it, or its receipt, which calls its number `id`.
      if (typeof (record['transactionId'] ?? record['id']) === 'string') vendor.written.push({ kind, key, record })
      else errors.push({ index, field: 'transactionId', code: 'missing', message: 'transactionId is missing' })
    }
    const answer = { status: 200, body: { accepted: records.length - errors.length, errors } }
    if (key !== '') this.#storedAnswers.set(key, answer)
    return answer
  }
}
