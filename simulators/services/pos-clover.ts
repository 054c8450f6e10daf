import { CLOVER_WRITING, cloverOrderDesk } from './clover-orders.ts'
import { serveVendor, type SimulatedVendor, type VendorApi, type VendorOptions } from './vendor-server.ts'

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
