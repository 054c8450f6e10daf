import {
  serveVendor,
  type SimulatedVendor,
  type VendorAnswer,
  type VendorApi,
  type VendorOptions,
} from './vendor-server.ts'
import type { VendorRequest } from './vendor-server.ts'

/**
 * Odoo: the External JSON-2 API of Odoo 19 and the older JSON-RPC; lists, sale orders and credit notes. Sources:
 * https://www.odoo.com/documentation/19.0/developer/reference/external_api.html and …/external_rpc_api.html.
 */
const KEY = '0f1e2d3c4b5a69788796a5b4c3d2e1f0'
const DATABASE = 'hafenkante'

type Row = Record<string, unknown>
type Term = [string, string, unknown]

/** Starts a simulated Odoo on a local port; `api` selects the kind of its credentials. */
export function odooSystem(options: VendorOptions & { api?: 'json2' | 'jsonrpc' } = {}): Promise<SimulatedVendor> {
  return serveVendor(new OdooApi(options), options)
}

/** The records of one Odoo. */
class OdooApi implements VendorApi {
  readonly #options: VendorOptions & { api?: 'json2' | 'jsonrpc' }
  readonly #pageSize: number
  readonly #orders: Row[] = []
  readonly #moves: Row[] = []
  readonly unauthorized: VendorAnswer = {
    status: 401,
    body: {
      name: 'werkzeug.exceptions.Unauthorized',
      message: 'Invalid apikey',
      arguments: ['Invalid apikey', 401],
      context: {},
      debug: '',
    },
  }
  readonly rateLimited: VendorAnswer = {
    status: 429,
    body: '<html><h1>Too Many Requests</h1></html>',
    headers: { 'content-type': 'text/html' },
  }

  constructor(options: VendorOptions & { api?: 'json2' | 'jsonrpc' }) {
    this.#options = options
    this.#pageSize = options.pageSize ?? 3
  }

  credentials(baseUrl: string): Record<string, string> {
    return {
      baseUrl,
      database: DATABASE,
      apiKey: KEY,
      partnerId: '42',
      ...(this.#options.api === 'jsonrpc' && { api: 'jsonrpc', username: 'untag' }),
    }
  }

  isAuthorized({ path, headers }: VendorRequest): boolean {
    return (
      path === '/jsonrpc' || (headers['authorization'] === `bearer ${KEY}` && headers['x-odoo-database'] === DATABASE)
    )
  }

  serve({ method, path, json }: VendorRequest, vendor: SimulatedVendor): VendorAnswer {
    if (method === 'POST' && path === '/jsonrpc')
      return {
        status: 200,
        body: { jsonrpc: '2.0', id: json['id'], ...this.#rpc((json['params'] ?? {}) as object, vendor) },
      }
    const [, , version, model = '', name = ''] = path.split('/')
    if (method !== 'POST' || version !== '2')
      return { status: 404, body: { name: 'werkzeug.exceptions.NotFound', message: '404 Not Found' } }
    const done = this.#execute(model, name, json, vendor)
    return 'result' in done
      ? { status: 200, body: done.result === 0 ? '0' : done.result }
      : {
          status: 422,
          body: { name: done.exception, message: done.exception, arguments: [], context: {}, debug: '' },
        }
  }

  #tableOf(model: string, { goods }: SimulatedVendor): Row[] | undefined {
    if (model === 'product.product')
      return goods.products.map((p) => ({
        id: Number(p.id),
        default_code: `A${p.id}`,
        name: p.name,
        barcode: p.ean ?? false,
        qty_available: p.stock + 0,
        sale_ok: true,
      }))
    if (model === 'purchase.order') {
      const name = (id: string) => goods.suppliers.find((s) => s.id === id)?.name ?? ''
      return goods.orders.map((o) => ({
        id: Number(o.id),
        name: `P0${o.id}`,
        state: 'purchase',
        partner_id: [Number(o.supplierId), name(o.supplierId)],
        date_order: `${o.orderedAt} 08:00:00`,
        date_planned: false,
        amount_total: o.totalCent / 100,
        currency_id: [1, 'EUR'],
      }))
    }
    if (model === 'res.partner')
      return goods.suppliers.map((s) => ({
        id: Number(s.id),
        name: s.name,
        email: s.email,
        phone: false,
        vat: false,
        country_code: 'DE',
        supplier_rank: 1,
      }))
    if (model === 'account.move') return this.#moves
    return model === 'sale.order' ? this.#orders : undefined
  }

  /** Returns the result of the method, or the name of an exception. */
  #execute(
    model: string,
    method: string,
    args: Row,
    vendor: SimulatedVendor,
  ): { result: unknown } | { exception: string } {
    const table = this.#tableOf(model, vendor)
    if (!table) return { exception: 'builtins.KeyError' }
    const domain = (args['domain'] ?? []) as Term[]
    const found = table.filter((row) => domain.every((term) => holds(row, term)))
    if (method === 'search_count') return { result: found.length }
    if (method === 'search_read') {
      const fields = (args['fields'] ?? []) as string[]
      const unknown = fields.find((field) => table.length > 0 && !(field in (table[0] as Row)))
      if (unknown !== undefined) return { exception: 'builtins.ValueError' }
      const page = found.slice(0, Math.min(Number(args['limit'] ?? 80), this.#pageSize))
      return { result: page.map((row) => Object.fromEntries(['id', ...fields].map((field) => [field, row[field]]))) }
    }
    if (method !== 'create' || (table !== this.#orders && table !== this.#moves))
      return { exception: 'builtins.AttributeError' }
    const [vals] = (args['vals_list'] ?? []) as Row[]
    if (typeof vals?.['partner_id'] !== 'number') return { exception: 'odoo.exceptions.ValidationError' }
    if (table === this.#moves) return this.#createMove(vals, vendor)
    const id = 900 + this.#orders.length
    this.#orders.push({ id, ...vals })
    vendor.written.push({ kind: 'transactions', key: String(vals['client_order_ref']), record: vals })
    return { result: [id] }
  }

  /**
   * Creates a draft credit note. Each line must be an Odoo create command (`[0, 0, values]`) with a positive quantity.
   */
  #createMove(vals: Row, vendor: SimulatedVendor): { result: unknown } | { exception: string } {
    const lines = (vals['invoice_line_ids'] ?? []) as [number, number, Row][]
    const isLine = ([command, , line]: [number, number, Row]) =>
      command === 0 && Number.isInteger(line['product_id']) && Number(line['quantity']) > 0
    if (vals['move_type'] !== 'out_refund' || lines.length === 0 || !lines.every(isLine))
      return { exception: 'odoo.exceptions.ValidationError' }
    this.#moves.push({ id: 5_000 + this.#moves.length, state: 'draft', ...vals })
    vendor.written.push({ kind: 'refunds', key: String(vals['ref']), record: vals })
    return { result: [4_999 + this.#moves.length] }
  }

  #rpc(params: { service?: string; method?: string; args?: unknown[] }, vendor: SimulatedVendor): Row {
    const args = params.args ?? []
    if (params.service === 'common' && params.method === 'login')
      return { result: args[0] === DATABASE && args[1] === 'untag' && args[2] === KEY ? 7 : false }
    const [database, uid, key, model, method, , kwargs] = args
    if (database !== DATABASE || uid !== 7 || key !== KEY)
      return {
        error: {
          code: 200,
          message: 'Odoo Server Error',
          data: { name: 'odoo.exceptions.AccessDenied', message: 'Access Denied' },
        },
      }
    const done = this.#execute(String(model), String(method), (kwargs ?? {}) as Row, vendor)
    return 'result' in done
      ? done
      : { error: { code: 200, message: 'Odoo Server Error', data: { name: done.exception, message: '' } } }
  }
}

function holds(row: Row, [field, operator, value]: Term): boolean {
  const own = row[field]
  if (operator === '=') return own === value
  if (operator === '!=') return own !== value
  return operator === '>' && Number(own) > Number(value)
}
