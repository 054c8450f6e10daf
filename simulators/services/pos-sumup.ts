import { serveVendor, type SimulatedVendor, type VendorApi, type VendorOptions } from './vendor-server.ts'

/**
 * SumUp POS (formerly Goodtill): login, categories and products. Sources: https://support.thegoodtill.com/support/api
 * and public clients of the API; the reference at https://apidoc.thegoodtill.com was not accessible.
 */
const TOKEN = 'eyJ0eXAiOiJKV1QifQ.simulated'

/** Starts a simulated SumUp POS shop on a local port. */
export function sumupSystem(options: VendorOptions = {}): Promise<SimulatedVendor> {
  const api: VendorApi = {
    credentials: (baseUrl) => ({ baseUrl, subdomain: 'hafenkante', username: 'untag', password: 'geheim' }),
    isAuthorized: ({ path, headers }) => path === '/api/login' || headers['authorization'] === `Bearer ${TOKEN}`,
    unauthorized: { status: 401, body: { status: false, message: 'Unauthenticated.' } },
    rateLimited: { status: 429, body: { message: 'Too Many Attempts.' }, headers: { 'retry-after': '3' } },
    serve({ method, path, json }, { goods }) {
      if (method === 'POST' && path === '/api/login') {
        const isKnown =
          json['subdomain'] === 'hafenkante' && json['username'] === 'untag' && json['password'] === 'geheim'
        return isKnown
          ? { status: 200, body: { token: TOKEN } }
          : { status: 401, body: { status: false, message: 'Invalid credentials' } }
      }
      if (method !== 'GET') return { status: 404, body: { status: false } }
      if (path === '/api/categories')
        return {
          status: 200,
          body: {
            status: true,
            data: [...new Set(goods.products.map((p) => p.category))].map((name) => ({ id: `cat-${name}`, name })),
          },
        }
      if (path !== '/api/products') return { status: 404, body: { status: false } }
      const data = goods.products.map(({ id, ean, name, priceCent, category }) => ({
        id: `gt-${id}`,
        outlet_id: 'outlet-1',
        product_name: name,
        product_sku: ean ?? '',
        selling_price: (priceCent / 100).toFixed(2),
        category_id: `cat-${category}`,
        active: 1,
        shareable: 1,
        top_level_product: 1,
        image: null,
      }))
      return { status: 200, body: { status: true, data } }
    },
  }
  return serveVendor(api, options)
}
