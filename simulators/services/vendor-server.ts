import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

/** Data of a simulated till or ERP system, independent of its API. */
export interface VendorGoods {
  products: VendorProduct[]
  orders: VendorOrder[]
  suppliers: VendorSupplier[]
}

export interface VendorProduct {
  readonly id: string
  /** Null if the merchant entered no EAN, as in real catalogues. */
  ean: string | null
  name: string
  priceCent: number
  /** Percent. */
  vat: number
  category: string
  stock: number
}

interface VendorOrder {
  readonly id: string
  readonly supplierId: string
  readonly status: string
  readonly orderedAt: string
  readonly totalCent: number
}

interface VendorSupplier {
  readonly id: string
  readonly name: string
  readonly email: string
}

const CATEGORIES = ['Hemden', 'Hosen', 'Schirme']

/** Makes products with valid EANs, orders and suppliers. */
export function vendorGoods(count: number): VendorGoods {
  return {
    products: Array.from({ length: count }, (_, i) => ({
      id: String(1_001 + i),
      ean: eanOf(400_638_100_000 + i * 7),
      name: `Artikel ${i + 1}`,
      priceCent: 199 + i * 10,
      vat: i % 4 === 3 ? 7 : 19,
      category: CATEGORIES[i % CATEGORIES.length] ?? '',
      stock: 5 + i,
    })),
    orders: Array.from({ length: 4 }, (_, i) => ({
      id: String(501 + i),
      supplierId: String(71 + (i % 2)),
      status: 'open',
      orderedAt: `2026-11-1${i}`,
      totalCent: 10_000 + i,
    })),
    suppliers: Array.from({ length: 2 }, (_, i) => ({
      id: String(71 + i),
      name: `Lieferant ${i + 1}`,
      email: `bestellung${i + 1}@lieferant.example`,
    })),
  }
}

/** A small shop. */
const SAMPLE_GOODS: VendorGoods = vendorGoods(10)

function eanOf(twelve: number): string {
  const digits = String(twelve)
  const sum = [...digits].reduce((total, digit, i) => total + Number(digit) * (i % 2 === 0 ? 1 : 3), 0)
  return `${digits}${(10 - (sum % 10)) % 10}`
}

/**
 * The HTTP server of all simulated tills and ERP systems, with faults and a list of requests. The APIs are in pos-*.ts
 * and erp-*.ts, written from public documentation.
 */
export interface SimulatedVendor {
  readonly baseUrl: string
  /** The `credentials` for syncPOS or syncERP. */
  readonly credentials: Readonly<Record<string, string>>
  readonly goods: VendorGoods
  /** Received requests, oldest first. */
  readonly requests: readonly VendorRequest[]
  /** Faults of the next requests. Each request removes the first fault from the list. */
  readonly faults: VendorFaultName[]
  /**
   * Called for each request for which `faults` has no fault. If the function returns a fault, this fault replaces the
   * answer. A promise delays the answer.
   */
  gate: ((request: VendorRequest) => VendorFaultName | undefined | Promise<undefined>) | undefined
  /** Records that clients wrote. */
  readonly written: { kind: string; key: string; record: Record<string, unknown> }[]
  close(): Promise<void>
}

export interface VendorRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  /** The JSON body; an empty object if there is none. */
  readonly json: Record<string, unknown>
}

export interface VendorAnswer {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * `garbage`: status 200 with a page that is no JSON. `reset`: no answer. `lost_write`: executes each write, but does
 * not answer it; other requests get their answer.
 */
const VENDOR_FAULTS = ['rate_limit', 'unavailable', 'unauthorized', 'garbage', 'reset', 'lost_write'] as const
type VendorFaultName = (typeof VENDOR_FAULTS)[number]

/** One vendor's API. */
export interface VendorApi {
  credentials(baseUrl: string): Record<string, string>
  isAuthorized(request: VendorRequest): boolean
  readonly unauthorized: VendorAnswer
  readonly rateLimited: VendorAnswer
  serve(request: VendorRequest, vendor: SimulatedVendor): VendorAnswer
}

export interface VendorOptions {
  /** Default: sample goods. */
  goods?: VendorGoods
  /** Maximum records of a page; default 3. */
  pageSize?: number
  host?: string
  port?: number
}

const UNAVAILABLE: VendorAnswer = { status: 503, body: { message: 'try again' } }
const BODY_LIMIT = 8 * 1024 * 1024

/** Starts a server on a local port; port 0 means a free port. */
export async function serveVendor(
  api: VendorApi,
  { goods = SAMPLE_GOODS, host = '127.0.0.1', port = 0 }: VendorOptions = {},
): Promise<SimulatedVendor> {
  const requests: VendorRequest[] = []
  const faults: VendorFaultName[] = []
  let baseUrl = ''

  function answer(request: VendorRequest, response: ServerResponse): void {
    requests.push(request)
    const fault = faults.shift() ?? vendor.gate?.(request)
    if (fault instanceof Promise) void fault.then(() => reply(request, response, undefined))
    else reply(request, response, fault)
  }

  function reply(request: VendorRequest, response: ServerResponse, fault: VendorFaultName | undefined): void {
    if (fault === 'reset') return void response.destroy()
    if (fault === 'garbage')
      return void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Maintenance</html>')
    if (fault === 'unavailable') return send(response, UNAVAILABLE)
    if (fault === 'rate_limit') return send(response, api.rateLimited)
    if (fault === 'unauthorized' || !api.isAuthorized(request)) return send(response, api.unauthorized)
    const before = vendor.written.length
    const served = api.serve(request, vendor)
    if (fault === 'lost_write' && vendor.written.length > before) response.destroy()
    else send(response, served)
  }

  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = []
    let size = 0
    incoming.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > BODY_LIMIT) incoming.destroy()
      else chunks.push(chunk)
    })
    incoming.on('end', () => answer(requestOf(incoming, Buffer.concat(chunks).toString('utf8')), response))
  })
  await new Promise<void>((resolve) => server.listen(port, host, resolve))
  const address = server.address()
  baseUrl = `http://${host}:${typeof address === 'object' && address ? address.port : 0}`
  const vendor: SimulatedVendor = {
    baseUrl,
    credentials: api.credentials(baseUrl),
    goods,
    requests,
    faults,
    gate: undefined,
    written: [],
    close() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
  return vendor
}

function requestOf(incoming: IncomingMessage, text: string): VendorRequest {
  const url = new URL(incoming.url ?? '/', 'http://vendor')
  const headers = Object.fromEntries(
    Object.entries(incoming.headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : (value ?? ''),
    ]),
  )
  return {
    method: incoming.method ?? '',
    path: url.pathname,
    query: url.searchParams,
    headers,
    text,
    json: parse(text),
  }
}

function parse(text: string): Record<string, unknown> {
  try {
    const json = JSON.parse(text) as unknown
    return typeof json === 'object' && json !== null && !Array.isArray(json)
      ? (json as Record<string, unknown>)
      : { '': json }
  } catch {
    return {}
  }
}

function send(response: ServerResponse, { status, body, headers }: VendorAnswer): void {
  const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body)
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text)
}

/** One page of a list from index `from`, and the index of the next page. */
export function pageFrom<T>(
  all: readonly T[],
  from: number,
  size: number,
): { page: readonly T[]; next: number | undefined } {
  const page = all.slice(from, from + size)
  return { page, next: from + size < all.length ? from + size : undefined }
}

/**
 * The part of OData 4 that a simulated list needs: `$select`, `$filter` with equalities joined by "and", `$top`, and
 * pages by `$skip`.
 */
export type OdataRow = Readonly<Record<string, unknown>>

/** Answers a list request; `linkTo` makes the address of the next page. */
export function odataList(
  rows: readonly OdataRow[],
  request: VendorRequest,
  pageSize: number,
  linkTo: (query: string) => string,
  refuse: (message: string) => VendorAnswer,
): VendorAnswer {
  const { query } = request
  const select = query.get('$select')?.split(',')
  const [known] = rows
  const unknown = select?.find((field) => known !== undefined && !(field in known))
  if (unknown !== undefined) return refuse(`Could not find a property named '${unknown}'`)
  const terms = (query.get('$filter') ?? '').split(' and ').filter((term) => term !== '')
  const wanted = terms.map((term) => /^(\w+) eq (?:'((?:[^']|'')*)'|(true|false))$/.exec(term))
  if (wanted.some((term) => term === null || (known !== undefined && !((term[1] ?? '') in known))))
    return refuse('The $filter is not understood')
  const found = rows.filter((row) =>
    wanted.every(
      (term) =>
        row[term?.[1] ?? ''] ===
        (term?.[3] === undefined ? (term?.[2] ?? '').replaceAll("''", "'") : term[3] === 'true'),
    ),
  )
  const skip = Number(query.get('$skip') ?? 0)
  const top = Number(query.get('$top') ?? found.length)
  const requestedSize = Number(/odata\.maxpagesize=(\d+)/.exec(request.headers['prefer'] ?? '')?.[1] ?? pageSize)
  const size = Math.min(requestedSize === 0 ? found.length : requestedSize, pageSize, top)
  const page = found.slice(skip, skip + size)
  const next = new URLSearchParams(query)
  next.set('$skip', String(skip + size))
  const hasMore = skip + size < Math.min(found.length, query.has('$top') ? skip + top : found.length)
  const value = page.map((row) => (select ? Object.fromEntries(select.map((field) => [field, row[field]])) : row))
  return {
    status: 200,
    body: { '@odata.context': '$metadata#list', value, ...(hasMore && { '@odata.nextLink': linkTo(next.toString()) }) },
  }
}
