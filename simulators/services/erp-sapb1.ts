import {
  odataList,
  type OdataRow,
  serveVendor,
  type SimulatedVendor,
  type VendorAnswer,
  type VendorApi,
  type VendorOptions,
  type VendorRequest,
} from './vendor-server.ts'

/**
 * SAP Business One's Service Layer, OData 4 (`/b1s/v2`), with sessions. Source:
 * https://help.sap.com/docs/SAP_BUSINESS_ONE ("Working with SAP Business One Service Layer": login and session,
 * pagination by odata.maxpagesize and nextLink, errors). The Service Layer has no rate limit. The simulated status 429
 * comes from a gateway in front of the Service Layer.
 */
export function sapB1System(options: VendorOptions & { sessionRequests?: number } = {}): Promise<SimulatedVendor> {
  return serveVendor(new ServiceLayer(options), options)
}

/** The company of the Service Layer. */
class ServiceLayer implements VendorApi {
  readonly #pageSize: number
  /** Number of requests after which a session expires. */
  readonly #sessionRequests: number
  readonly #sessions = new Map<string, number>()
  readonly #orders: OdataRow[] = []
  readonly #creditNotes: OdataRow[] = []
  readonly unauthorized: VendorAnswer = {
    status: 401,
    body: { error: { code: '301', message: 'Invalid session or session already timeout.' } },
  }
  readonly rateLimited: VendorAnswer = {
    status: 429,
    body: { error: { code: '429', message: 'Too many requests' } },
    headers: { 'retry-after': '1' },
  }

  constructor(options: VendorOptions & { sessionRequests?: number }) {
    this.#pageSize = options.pageSize ?? 3
    this.#sessionRequests = options.sessionRequests ?? 4
  }

  credentials(baseUrl: string): Record<string, string> {
    return {
      baseUrl,
      companyDb: 'SBOHAFEN',
      username: 'untag',
      password: 'geheim',
      warehouse: '01',
      cardCode: 'C-LAUF',
    }
  }

  isAuthorized({ path, headers }: VendorRequest): boolean {
    return path === '/b1s/v2/Login' || this.#isOpen(headers['cookie'] ?? '')
  }

  serve(request: VendorRequest, vendor: SimulatedVendor): VendorAnswer {
    const { method, path } = request
    if (method === 'POST' && path === '/b1s/v2/Login') return this.#login(request)
    const name = /^\/b1s\/v2\/(\w+)$/.exec(path)?.[1] ?? ''
    const table = this.#tableOf(name, vendor)
    if (!table)
      return { status: 404, body: { error: { code: '-1', message: `Unrecognized resource path '${name}'.` } } }
    if (method === 'POST' && name === 'Orders') return this.#create(this.#orders, request, vendor)
    if (method === 'POST' && name === 'CreditNotes') return this.#create(this.#creditNotes, request, vendor)
    // Links to the next page are relative to the service.
    return odataList(table, request, this.#pageSize, (query) => `${name}?${query}`, refuse)
  }

  #tableOf(name: string, { goods }: SimulatedVendor): readonly OdataRow[] | undefined {
    if (name === 'Items') {
      return goods.products.map((p) => {
        const warehouses = [
          { WarehouseCode: '01', InStock: p.stock },
          { WarehouseCode: '02', InStock: 1_000 },
        ]
        return {
          ItemCode: `A${p.id}`,
          ItemName: p.name,
          BarCode: p.ean,
          InventoryItem: 'tYES',
          QuantityOnStock: p.stock + 1_000,
          ItemWarehouseInfoCollection: warehouses,
        }
      })
    }
    if (name === 'PurchaseOrders') {
      return goods.orders.map((o) => ({
        DocEntry: Number(o.id),
        DocNum: Number(o.id) + 7,
        DocumentStatus: 'bost_Open',
        CardCode: o.supplierId,
        DocDate: `${o.orderedAt}T00:00:00Z`,
        DocDueDate: null,
        DocTotal: o.totalCent / 100,
        DocCurrency: 'EUR',
      }))
    }
    if (name === 'BusinessPartners')
      return goods.suppliers.map((s) => ({
        CardCode: s.id,
        CardName: s.name,
        CardType: 'cSupplier',
        EmailAddress: s.email,
        Phone1: null,
        Country: 'DE',
        FederalTaxID: null,
      }))
    if (name === 'CreditNotes') return this.#creditNotes
    return name === 'Orders' ? this.#orders : undefined
  }

  #login({ json }: VendorRequest): VendorAnswer {
    if (json['CompanyDB'] !== 'SBOHAFEN' || json['UserName'] !== 'untag' || json['Password'] !== 'geheim')
      return this.unauthorized
    const id = `session-${this.#sessions.size + 1}`
    this.#sessions.set(id, this.#sessionRequests)
    return {
      status: 200,
      body: { '@odata.context': '$metadata#B1Sessions', SessionId: id, Version: '1000290', SessionTimeout: 30 },
      headers: { 'set-cookie': `B1SESSION=${id}; HttpOnly, ROUTEID=.node3; path=/b1s` },
    }
  }

  /** True if the cookie names a valid session. Each call reduces the session's remaining requests by one. */
  #isOpen(cookie: string): boolean {
    const id = /B1SESSION=([^;]+)/.exec(cookie)?.[1] ?? ''
    const left = this.#sessions.get(id) ?? 0
    this.#sessions.set(id, left - 1)
    return left > 0 && cookie.includes('ROUTEID=.node3')
  }

  #create(table: OdataRow[], { json }: VendorRequest, vendor: SimulatedVendor): VendorAnswer {
    const lines = (json['DocumentLines'] ?? []) as OdataRow[]
    if (typeof json['CardCode'] !== 'string' || lines.length === 0) return refuse('Enter valid customer/vendor code')
    if (lines.some((line) => !(Number(line['Quantity']) > 0))) return refuse('Enter quantity greater than zero')
    const made = { DocEntry: 700 + table.length, ...json }
    table.push(made)
    vendor.written.push({
      kind: table === this.#orders ? 'transactions' : 'refunds',
      key: String(json['NumAtCard']),
      record: json,
    })
    return { status: 201, body: made }
  }
}

function refuse(message: string): VendorAnswer {
  return { status: 400, body: { error: { code: '-5002', message } } }
}
