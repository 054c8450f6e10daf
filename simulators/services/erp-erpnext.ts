import {
  serveVendor,
  type SimulatedVendor,
  type VendorAnswer,
  type VendorApi,
  type VendorOptions,
} from './vendor-server.ts'
import type { VendorRequest } from './vendor-server.ts'

/**
 * ERPNext with Frappe's REST API (version 15): lists and new documents. Sources:
 * https://docs.frappe.io/framework/user/en/api/rest and https://docs.frappe.io/framework/user/en/rate-limiting.
 */
type Row = Record<string, unknown>
type Filter = [string, string, unknown]

/** Starts a simulated ERPNext on a local port. */
export function erpnextSystem(options: VendorOptions = {}): Promise<SimulatedVendor> {
  return serveVendor(new ErpnextApi(options), options)
}

/** The documents of one ERPNext. */
class ErpnextApi implements VendorApi {
  readonly #pageSize: number
  readonly #orders: Row[] = []
  readonly #invoices: Row[] = []
  readonly unauthorized: VendorAnswer = {
    status: 401,
    body: { exc_type: 'AuthenticationError', exception: 'frappe.exceptions.AuthenticationError' },
  }
  readonly rateLimited: VendorAnswer = {
    status: 429,
    body: { exc_type: 'RateLimitExceededError' },
    headers: { 'retry-after': '4', 'x-ratelimit-remaining': '0' },
  }

  constructor(options: VendorOptions) {
    this.#pageSize = options.pageSize ?? 3
  }

  credentials(baseUrl: string): Record<string, string> {
    return {
      baseUrl,
      apiKey: 'a1b2c3d4e5f6a7b',
      apiSecret: 'f0e1d2c3b4a5968',
      warehouse: 'Laden - H',
      customer: 'Laufkundschaft',
    }
  }

  isAuthorized({ headers }: VendorRequest): boolean {
    return headers['authorization'] === 'token a1b2c3d4e5f6a7b:f0e1d2c3b4a5968'
  }

  serve({ method, path, query, json }: VendorRequest, vendor: SimulatedVendor): VendorAnswer {
    if (method === 'GET' && path === '/api/method/frappe.client.get_list') {
      const doctype = query.get('doctype') ?? ''
      // A child table can be read only through its parent.
      if (doctype === 'Item Barcode' && query.get('parent') !== 'Item')
        return { status: 403, body: { exc_type: 'PermissionError' } }
      const rows = this.#list(doctype, query, vendor)
      return Array.isArray(rows) ? { status: 200, body: { message: rows } } : rows
    }
    const doctype = /^\/api\/resource\/([^/]+)$/.exec(path)?.[1]
    if (doctype === undefined) return missing('Not found')
    if (method === 'POST') return this.#insert(decodeURIComponent(doctype), json, vendor)
    const rows = this.#list(decodeURIComponent(doctype), query, vendor)
    return Array.isArray(rows) ? { status: 200, body: { data: rows } } : rows
  }

  #tableOf(doctype: string, { goods }: SimulatedVendor): Row[] | undefined {
    if (doctype === 'Bin')
      return goods.products.map((p) => ({
        name: `bin-${p.id}`,
        item_code: `ITEM-${p.id}`,
        warehouse: 'Laden - H',
        actual_qty: p.stock + 0.0,
      }))
    if (doctype === 'Item Barcode')
      return goods.products.flatMap((p) =>
        p.ean === null ? [] : [{ name: `bc-${p.id}`, parent: `ITEM-${p.id}`, barcode: p.ean }],
      )
    if (doctype === 'Purchase Order')
      return goods.orders.map((o) => ({
        name: o.id,
        supplier: o.supplierId,
        status: 'To Receive and Bill',
        transaction_date: o.orderedAt,
        schedule_date: null,
        grand_total: o.totalCent / 100,
        currency: 'EUR',
        docstatus: 1,
      }))
    if (doctype === 'Supplier')
      return goods.suppliers.map((s) => ({
        name: s.id,
        supplier_name: s.name,
        country: 'Germany',
        tax_id: null,
        email_id: s.email,
        mobile_no: null,
        disabled: 0,
      }))
    if (doctype === 'Sales Invoice') return this.#invoices
    return doctype === 'Sales Order' ? this.#orders : undefined
  }

  #list(doctype: string, query: URLSearchParams, vendor: SimulatedVendor): Row[] | VendorAnswer {
    const table = this.#tableOf(doctype, vendor)
    if (!table) return missing(`DocType ${doctype} not found`)
    const fields = JSON.parse(query.get('fields') ?? '["name"]') as string[]
    const unknown = fields.find((field) => table.length > 0 && !(field in (table[0] as Row)))
    if (unknown !== undefined)
      return {
        status: 417,
        body: {
          exc_type: 'DataError',
          exception: `frappe.exceptions.DataError: Field not permitted in query: ${unknown}`,
        },
      }
    const filters = JSON.parse(query.get('filters') ?? '[]') as Filter[]
    const start = Number(query.get('limit_start') ?? 0)
    const requestedLength = Number(query.get('limit_page_length') ?? 20)
    const length = requestedLength === 0 ? table.length : Math.min(requestedLength, this.#pageSize)
    const found = table.filter((row) => filters.every((filter) => holds(row, filter)))
    return found
      .slice(start, start + length)
      .map((row) => Object.fromEntries(fields.map((field) => [field, row[field]])))
  }

  #insert(doctype: string, doc: Row, vendor: SimulatedVendor): VendorAnswer {
    if (typeof doc['customer'] !== 'string' || !Array.isArray(doc['items'])) {
      return {
        status: 417,
        body: { exc_type: 'MandatoryError', exception: 'frappe.exceptions.MandatoryError: [Sales Order]: customer' },
      }
    }
    if (doctype === 'Sales Invoice') return this.#insertReturn(doc, vendor)
    if (doctype !== 'Sales Order') return missing(`DocType ${doctype} not found`)
    const made = { name: `SAL-ORD-2026-${String(this.#orders.length + 1).padStart(5, '0')}`, docstatus: 0, ...doc }
    this.#orders.push(made)
    vendor.written.push({ kind: 'transactions', key: String(doc['po_no']), record: doc })
    return { status: 200, body: { data: made } }
  }

  /** Inserts a Sales Invoice that is a return; ERPNext requires negative quantities. */
  #insertReturn(doc: Row, vendor: SimulatedVendor): VendorAnswer {
    const items = doc['items'] as Row[]
    if (doc['is_return'] !== 1 || items.length === 0 || items.some((item) => Number(item['qty']) >= 0))
      return {
        status: 417,
        body: {
          exc_type: 'ValidationError',
          exception: 'frappe.exceptions.ValidationError: Atleast one item should be entered with negative quantity',
        },
      }
    const made = { name: `ACC-SINV-RET-${this.#invoices.length + 1}`, docstatus: 0, ...doc }
    this.#invoices.push(made)
    vendor.written.push({ kind: 'refunds', key: String(doc['po_no']), record: doc })
    return { status: 200, body: { data: made } }
  }
}

function missing(exception: string): VendorAnswer {
  return { status: 404, body: { exc_type: 'DoesNotExistError', exception } }
}

function holds(row: Row, [field, operator, value]: Filter): boolean {
  const own = row[field]
  if (operator === 'in') return (value as unknown[]).includes(own)
  if (operator === '<') return Number(own) < Number(value)
  return own === value
}
