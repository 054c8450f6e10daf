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
 * A till or ERP system of a merchant's own, as docs/integrations.md asks for one:
 *
 *   GET /articles · /stock · /orders · /suppliers ?cursor=   POST /{dataType} {records[]}
 *
 * It takes the same Idempotency-Key once, and refuses records without an id of their own.
 */
export function genericSystem(options: VendorOptions = {}): Promise<SimulatedVendor> {
  const answered = new Map<string, VendorAnswer>()
  const pageSize = options.pageSize ?? 3

  function read(list: readonly object[], name: string, query: URLSearchParams): VendorAnswer {
    const cursor = query.get('cursor')
    const from = cursor === null ? 0 : Number(/^c(\d+)$/.exec(cursor)?.[1] ?? Number.NaN)
    if (Number.isNaN(from)) return { status: 400, body: { error: 'no such cursor' } }
    const { page, next } = pageFrom(list, from, pageSize)
    return { status: 200, body: { [name]: page, ...(next !== undefined && { nextCursor: `c${next}` }) } }
  }

  function write(kind: string, request: VendorRequest, vendor: SimulatedVendor): VendorAnswer {
    const key = request.headers['idempotency-key'] ?? ''
    const before = answered.get(key)
    if (before) return before
    const records = (Array.isArray(request.json['records']) ? request.json['records'] : []) as Record<string, unknown>[]
    const errors: object[] = []
    for (const [index, record] of records.entries()) {
      if (typeof record['transactionId'] === 'string') vendor.written.push({ kind, key, record })
      else errors.push({ index, field: 'transactionId', code: 'missing', message: 'transactionId is missing' })
    }
    const answer = { status: 200, body: { accepted: records.length - errors.length, errors } }
    if (key !== '') answered.set(key, answer)
    return answer
  }

  const api: VendorApi = {
    credentials: (baseUrl) => ({ baseUrl: `${baseUrl}/api`, token: 'token-of-the-shop' }),
    isAuthorized: ({ headers }) =>
      headers['authorization'] === 'Bearer token-of-the-shop' ||
      headers['authorization'] === `Basic ${Buffer.from('untag:geheim').toString('base64')}`,
    unauthorized: { status: 401, body: { error: 'who are you?' } },
    rateLimited: { status: 429, body: { error: 'slower' }, headers: { 'retry-after': '2' } },
    serve(request, vendor) {
      const { products, orders, suppliers } = vendor.goods
      const kind = /^\/api\/([A-Za-z0-9_-]+)$/.exec(request.path)?.[1]
      if (kind === undefined) return { status: 404, body: { error: 'no such path' } }
      if (request.method === 'POST') return write(kind, request, vendor)
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
        return read(articles, kind, request.query)
      }
      if (kind === 'stock')
        return read(
          products.map(({ ean, stock }) => ({ article_number: ean, quantity: stock })),
          kind,
          request.query,
        )
      if (kind === 'orders')
        return read(
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
        return read(
          suppliers.map(({ id, name, email }) => ({ external_id: Number(id), supplier_name: name, email })),
          kind,
          request.query,
        )
      return { status: 404, body: { error: 'no such path' } }
    },
  }
  return serveVendor(api, options)
}
