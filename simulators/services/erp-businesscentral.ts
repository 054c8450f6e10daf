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
 * Dynamics 365 Business Central, API v2.0, and its login. Sources:
 * https://learn.microsoft.com/dynamics365/business-central/dev-itpro/api-reference/v2.0 (item, purchaseOrder, vendor,
 * salesOrder; errors; rate limits) and
 * https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow.
 */
const TENANT = '3f2504e0-4f89-11d3-9a0c-0305e82c3301'
const CLIENT = '3f2504e0-4f89-11d3-9a0c-0305e82c3302'
const COMPANY = '3f2504e0-4f89-11d3-9a0c-0305e82c3303'
const TOKEN = 'eyJ0eXAiOiJKV1QifQ.entra.simulated'
const BASE = `/v2.0/${TENANT}/Production/api/v2.0/companies(${COMPANY})/`

/** Starts a simulated Business Central company on a local port. */
export function businessCentralSystem(options: VendorOptions = {}): Promise<SimulatedVendor> {
  return serveVendor(new BusinessCentralApi(options), options)
}

/** The tables of one company. */
class BusinessCentralApi implements VendorApi {
  readonly #pageSize: number
  readonly #salesOrders: OdataRow[] = []
  readonly #creditMemos: OdataRow[] = []
  readonly unauthorized: VendorAnswer = {
    status: 401,
    body: {
      error: {
        code: 'Authentication_InvalidCredentials',
        message: 'The server has rejected the client credentials.',
      },
    },
  }
  readonly rateLimited: VendorAnswer = {
    status: 429,
    body: { error: { code: 'Application_TooManyRequests', message: 'Too many requests reached.' } },
    headers: { 'retry-after': '5' },
  }

  constructor(options: VendorOptions) {
    this.#pageSize = options.pageSize ?? 3
  }

  credentials(baseUrl: string): Record<string, string> {
    return {
      baseUrl,
      tenantId: TENANT,
      clientId: CLIENT,
      clientSecret: 'secret',
      companyId: COMPANY,
      customerNumber: '10000',
    }
  }

  isAuthorized({ path, headers }: VendorRequest): boolean {
    return path.endsWith('/oauth2/v2.0/token') || headers['authorization'] === `Bearer ${TOKEN}`
  }

  serve(request: VendorRequest, vendor: SimulatedVendor): VendorAnswer {
    const { method, path, text } = request
    if (method === 'POST' && path === `/${TENANT}/oauth2/v2.0/token`) return this.#login(text)
    const name = path.startsWith(BASE) ? path.slice(BASE.length) : ''
    const table = this.#tableOf(name, vendor)
    if (!table)
      return {
        status: 404,
        body: { error: { code: 'BadRequest_NotFound', message: `Resource not found for the segment '${name}'.` } },
      }
    if (method === 'POST' && (name === 'salesOrders' || name === 'salesCreditMemos'))
      return this.#create(name, request.json, vendor)
    return odataList(table, request, this.#pageSize, (query) => `${vendor.baseUrl}${path}?${query}`, refuse)
  }

  #idOf(number: string): string {
    return `3f2504e0-4f89-11d3-9a0c-${number.padStart(12, '0')}`
  }

  #tableOf(name: string, { goods }: SimulatedVendor): readonly OdataRow[] | undefined {
    if (name === 'items')
      return goods.products.map((p) => ({
        id: this.#idOf(p.id),
        number: p.id,
        displayName: p.name,
        type: 'Inventory',
        blocked: false,
        gtin: p.ean ?? '',
        inventory: p.stock,
        unitPrice: p.priceCent / 100,
      }))
    if (name === 'purchaseOrders') {
      return goods.orders.map((o) => ({
        id: this.#idOf(o.id),
        number: o.id,
        status: 'Open',
        orderDate: o.orderedAt,
        requestedReceiptDate: '0001-01-01',
        vendorNumber: o.supplierId,
        totalAmountIncludingTax: o.totalCent / 100,
        currencyCode: 'EUR',
      }))
    }
    if (name === 'vendors')
      return goods.suppliers.map((s) => ({
        id: this.#idOf(s.id),
        number: s.id,
        displayName: s.name,
        email: s.email,
        phoneNumber: '',
        country: 'DE',
        taxRegistrationNumber: '',
      }))
    if (name === 'salesCreditMemos') return this.#creditMemos
    return name === 'salesOrders' ? this.#salesOrders : undefined
  }

  #create(kind: 'salesOrders' | 'salesCreditMemos', json: OdataRow, vendor: SimulatedVendor): VendorAnswer {
    const [table, date] =
      kind === 'salesOrders' ? [this.#salesOrders, 'orderDate'] : [this.#creditMemos, 'creditMemoDate']
    const fields = new Set(['customerNumber', 'externalDocumentNumber', date, `${kind.slice(0, -1)}Lines`])
    const extra = Object.keys(json).find((field) => !fields.has(field))
    if (extra !== undefined) return refuse(`The property '${extra}' does not exist on type 'Microsoft.NAV.${kind}'.`)
    const lines = (json[`${kind.slice(0, -1)}Lines`] ?? []) as OdataRow[]
    const unknown = lines.find((line) => !vendor.goods.products.some((p) => p.id === line['lineObjectNumber']))
    const isWrong = lines.some((line) => line['lineType'] !== 'Item' || Number(line['quantity']) <= 0)
    if (typeof json['customerNumber'] !== 'string' || unknown || isWrong) return refuse('The field value is not valid.')
    if (String(json['externalDocumentNumber']).length > 35) return refuse('The length of the string exceeds 35.')
    const made = {
      id: this.#idOf(String(9_000 + table.length)),
      number: `${kind === 'salesOrders' ? 'SO' : 'CM'}-${1_001 + table.length}`,
      ...json,
    }
    table.push(made)
    const written = kind === 'salesOrders' ? 'transactions' : 'refunds'
    vendor.written.push({ kind: written, key: String(json['externalDocumentNumber']), record: json })
    return { status: 201, body: made }
  }

  #login(text: string): VendorAnswer {
    const form = new URLSearchParams(text)
    const isKnown =
      form.get('grant_type') === 'client_credentials' &&
      form.get('client_id') === CLIENT &&
      form.get('client_secret') === 'secret' &&
      form.get('scope') === 'https://api.businesscentral.dynamics.com/.default'
    if (isKnown) return { status: 200, body: { token_type: 'Bearer', expires_in: 3_599, access_token: TOKEN } }
    return {
      status: 401,
      body: { error: 'invalid_client', error_description: 'AADSTS7000215: Invalid client secret provided.' },
    }
  }
}

function refuse(message: string): VendorAnswer {
  return { status: 400, body: { error: { code: 'BadRequest', message } } }
}
