import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import { pspBooks, type PspBooksOptions } from './psp-books.ts'
import type { PspAnswer, PspNotification, SimulatedRefund, SimulatedSession } from './psp-desk.ts'

/** A payment service provider that takes no money, over real HTTP: its books are psp-books.ts. */
export interface SimulatedPsp {
  readonly baseUrl: string
  readonly sessions: ReadonlyMap<string, SimulatedSession>
  readonly refunds: readonly SimulatedRefund[]
  /** Requests that arrived, such as `POST /sessions`. */
  readonly requests: readonly string[]
  readonly switches: PspSwitches
  /** Requests whose senders wait for an answer that will not come. */
  readonly unanswered: number
  /** What `configurePSP` is told of it. */
  config(): Record<string, string>
  /** The shopper does this at the provider's page; then the notification goes out. Answers the statuses that came back. */
  end(sessionId: string, status: 'paid' | 'cancelled' | 'expired', amountCent?: number): Promise<number[]>
  /** Sends the notifications that were kept back, the newest first. */
  sendKept(): Promise<number[]>
  /** Claims that an open session is paid, as somebody does who does not know the secret. */
  forge(sessionId: string): Promise<number>
  /** A refund that was taken fails after all; then the notification goes out. undefined where this provider tells nobody. */
  failRefund(refundId: string): Promise<number[] | undefined>
  /** Ends the requests that were left without an answer. */
  release(): void
  close(): Promise<void>
}

export interface PspSwitches {
  /** Answers nothing until `release`, and does nothing. */
  hang: boolean
  /** Does what it is asked, and answers nothing until `release`. */
  hangAfterwards: boolean
  /** Answers this status instead, and does nothing. */
  status: number | undefined
  /** Keeps notifications back. */
  keep: boolean
  /** Sends each notification so often. */
  copies: number
}

export interface PspOptions extends PspBooksOptions {
  /** Where notifications go. */
  notifyUrl(): string
  readonly host?: string
  /** By default a free one. */
  readonly port?: number
  /** Sees each request with the status of its answer. */
  onRequest?(line: string): void
}

/** A provider on a port of this machine. `/pay/{session}` is the shopper's page: `?do=pay`, `cancel` or `expire`. */
export async function simulatedPsp(options: PspOptions): Promise<SimulatedPsp> {
  const requests: string[] = []
  const kept: PspNotification[] = []
  const held = new Set<ServerResponse>()
  const switches: PspSwitches = { hang: false, hangAfterwards: false, status: undefined, keep: false, copies: 1 }
  const books = pspBooks(options)
  const { sessions, refunds } = books

  function serve(incoming: IncomingMessage, response: ServerResponse, body: string): void {
    const { pathname: path, searchParams: query } = new URL(incoming.url ?? '/', 'http://psp')
    const method = incoming.method ?? ''
    if (path.startsWith('/pay/')) return void servePage(path.slice('/pay/'.length), query.get('do'), response)
    requests.push(`${method} ${path}`)
    if (switches.hang) return hold(response)
    const asked = { method, path, query, headers: incoming.headers, body }
    const answer = switches.status === undefined ? books.answer(asked) : books.refusal(switches.status)
    if (switches.hangAfterwards && method !== 'GET' && answer.isQuick !== true) return hold(response)
    options.onRequest?.(`${method} ${path} ${answer.status}`)
    send(response, answer)
  }

  function hold(response: ServerResponse): void {
    held.add(response)
    response.once('close', () => held.delete(response))
  }

  async function servePage(sessionId: string, wish: string | null, response: ServerResponse): Promise<void> {
    const status = ({ pay: 'paid', cancel: 'cancelled', expire: 'expired' } as const)[wish ?? '']
    const session = sessions.get(sessionId)
    if (session && status)
      options.onRequest?.(
        `${sessionId} ${status}: notified ${(await psp.end(sessionId, status).catch(() => ['nobody'])).join(', ')}`,
      )
    const links = ['pay', 'cancel', 'expire'].map((each) => `<a href="?do=${each}">${each}</a>`).join(' · ')
    const text = session
      ? `<p>${options.dialect}: ${session.amountCent / 100} ${session.currency}, ${session.status}</p><p>${links}</p>`
      : '<p>no such session</p>'
    response
      .writeHead(session ? 200 : 404, { 'content-type': 'text/html; charset=utf-8' })
      .end(`<!doctype html><title>A simulated provider</title>${text}`)
  }

  async function deliver({ body, headers }: PspNotification): Promise<number[]> {
    const statuses: number[] = []
    for (let i = 0; i < switches.copies; i++) statuses.push(await post(options.notifyUrl(), body, headers))
    return statuses
  }

  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => serve(incoming, response, Buffer.concat(chunks).toString('utf8')))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port ?? 0, options.host ?? '127.0.0.1', resolve)
  })
  const address = server.address()
  books.moveTo(`http://${options.host ?? '127.0.0.1'}:${typeof address === 'object' && address ? address.port : 0}`)

  const psp: SimulatedPsp = {
    baseUrl: books.baseUrl,
    sessions,
    refunds,
    requests,
    switches,
    get unanswered() {
      return held.size
    },
    config: () => books.config(),
    async end(sessionId, status, amountCent) {
      const notification = books.end(sessionId, status, amountCent)
      if (!notification) return []
      if (!switches.keep) return deliver(notification)
      kept.push(notification)
      return []
    },
    async sendKept() {
      const statuses: number[] = []
      for (const notification of kept.splice(0).reverse()) statuses.push(...(await deliver(notification)))
      return statuses
    },
    forge(sessionId) {
      const notification = books.forge(sessionId)
      return notification ? post(options.notifyUrl(), notification.body, notification.headers) : Promise.resolve(400)
    },
    async failRefund(refundId) {
      const notification = books.failRefund(refundId)
      return notification && deliver(notification)
    },
    release() {
      for (const response of held) response.destroy()
      held.clear()
    },
    close() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
  return psp
}

function send(response: ServerResponse, { status, body, headers }: PspAnswer): void {
  response
    .writeHead(status, { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers })
    .end(body === undefined ? '' : JSON.stringify(body))
}

function post(url: string, body: string, headers: Readonly<Record<string, string>>): Promise<number> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      url,
      { method: 'POST', headers: { 'content-length': Buffer.byteLength(body), ...headers } },
      (response) => {
        response.resume().on('end', () => resolve(response.statusCode ?? 0))
      },
    )
    outgoing.on('error', reject).end(body)
  })
}
