import { LIGHTSPEED_WRITING, lightspeedProductId, lightspeedSalesDesk } from './lightspeed-sales.ts'
import { serveVendor, type SimulatedVendor, type VendorApi, type VendorOptions } from './vendor-server.ts'

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
