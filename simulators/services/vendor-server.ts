import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { SAMPLE_GOODS, type VendorGoods } from './vendor-goods.ts'

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
   * answer.
   */
  gate: ((request: VendorRequest) => VendorFaultName | undefined) | undefined
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
export const VENDOR_FAULTS = ['rate_limit', 'unavailable', 'unauthorized', 'garbage', 'reset', 'lost_write'] as const
export type VendorFaultName = (typeof VENDOR_FAULTS)[number]

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
