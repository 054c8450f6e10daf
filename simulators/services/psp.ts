import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import { PspBooks, type PspBooksOptions } from './psp-books.ts'
import type { PspAnswer, PspNotification, SimulatedRefund, SimulatedSession } from './psp-desk.ts'

interface PspSwitches {
  /** Neither executes nor answers requests; `release` closes them. */
  hang: boolean
  /**
   * Executes all requests, but answers only GET requests and quick requests (`isQuick`). `release` closes all other
   * requests.
   */
  hangAfterwards: boolean
  /** Answers each request with this status and executes nothing. */
  status: number | undefined
  /** Stores notifications instead of sending them; `sendKept` sends them. */
  keep: boolean
  /** Number of copies of each notification. */
  copies: number
}

interface PspOptions extends PspBooksOptions {
  /** Address of the notifications. */
  notifyUrl(): string
  readonly host?: string
  /** Default: a free port. */
  readonly port?: number
  /** Called with each request and the status of its answer. */
  onRequest?(line: string): void
}

/** Starts a provider on a local port. `/pay/{session}` is the shopper's page: `?do=pay`, `cancel` or `expire`. */
export async function simulatedPsp(options: PspOptions): Promise<SimulatedPsp> {
  const psp = new SimulatedPsp(options)
  await psp.listen()
  return psp
}

/** A simulated payment service provider over real HTTP, without real money. psp-books.ts stores its state. */
export class SimulatedPsp {
  readonly #options: PspOptions
  /** Received requests, such as `POST /sessions`. */
  readonly requests: string[] = []
  readonly #kept: PspNotification[] = []
  #last: PspNotification | undefined
  readonly #held = new Set<ServerResponse>()
  readonly switches: PspSwitches = { hang: false, hangAfterwards: false, status: undefined, keep: false, copies: 1 }
  readonly #books: PspBooks
  readonly #server = createServer((incoming, response) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => this.#serve(incoming, response, Buffer.concat(chunks).toString('utf8')))
  })
  readonly sessions: ReadonlyMap<string, SimulatedSession>
  readonly refunds: readonly SimulatedRefund[]

  constructor(options: PspOptions) {
    this.#options = options
    this.#books = new PspBooks(options)
    this.sessions = this.#books.sessions
    this.refunds = this.#books.refunds
  }

  /** Starts to listen. */
  async listen(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(this.#options.port ?? 0, this.#options.host ?? '127.0.0.1', resolve)
    })
    const address = this.#server.address()
    this.#books.moveTo(
      `http://${this.#options.host ?? '127.0.0.1'}:${typeof address === 'object' && address ? address.port : 0}`,
    )
  }

  get baseUrl(): string {
    return this.#books.baseUrl
  }

  /** Number of requests without an answer. */
  get unanswered(): number {
    return this.#held.size
  }

  /** The settings for `configurePSP`. */
  config(): Record<string, string> {
    return this.#books.config()
  }

  /**
   * Ends a session as the shopper does on the provider's page, and sends the notification. Returns the HTTP statuses
   * with which the receivers answered.
   */
  async end(sessionId: string, status: 'paid' | 'cancelled' | 'expired', amountCent?: number): Promise<number[]> {
    return this.#sendOrKeep(this.#books.end(sessionId, status, amountCent))
  }

  /** Sends the stored notifications, newest first. */
  async sendKept(): Promise<number[]> {
    const statuses: number[] = []
    for (const notification of this.#kept.splice(0).reverse()) statuses.push(...(await this.#deliver(notification)))
    return statuses
  }

  /** Sends a forged notification which says that an open session is paid. */
  forge(sessionId: string): Promise<number> {
    const notification = this.#books.forge(sessionId)
    return notification
      ? post(this.#options.notifyUrl(), notification.body, notification.headers)
      : Promise.resolve(400)
  }

  /**
   * Fails an accepted refund later, and sends the notification. Returns undefined if this provider sends no
   * notification.
   */
  async failRefund(refundId: string): Promise<number[] | undefined> {
    const notification = this.#books.failRefund(refundId)
    return notification && this.#deliver(notification)
  }

  /** Sends the notification about the present state of a refund. */
  sendRefund(refundId: string): Promise<number[]> {
    return this.#sendOrKeep(this.#books.refundNotice(refundId))
  }

  /**
   * A refund in the provider's dashboard, or a dispute. Sends the notification, and returns the id and the statuses;
   * none if this provider sends no notification.
   */
  async moveBack(
    kind: 'refund' | 'dispute',
    sessionId: string,
    amountCent: number,
  ): Promise<{ id: string; statuses: number[] }> {
    const { id, notification } = this.#books.moveBack(kind, sessionId, amountCent)
    return { id, statuses: await this.#sendOrKeep(notification) }
  }

  /** Gives the merchant the money of a refund or dispute again, and sends the notification. */
  giveBack(id: string): Promise<number[]> {
    return this.#sendOrKeep(this.#books.giveBack(id))
  }

  /** The shopper pays the session again. */
  payAgain(sessionId: string): Promise<number[]> {
    return this.#sendOrKeep(this.#books.payAgain(sessionId))
  }

  async #sendOrKeep(notification: PspNotification | undefined): Promise<number[]> {
    if (!notification) return []
    this.#last = notification
    if (!this.switches.keep) return this.#deliver(notification)
    this.#kept.push(notification)
    return []
  }

  /** Refunds the second payment of a session in the dashboard. */
  refundSecond(sessionId: string): Promise<number[]> {
    return this.#sendOrKeep(this.#books.refundSecond(sessionId))
  }

  /** Sends the last notification again. */
  sendAgain(): Promise<number[]> {
    return this.#sendOrKeep(this.#last)
  }

  /** Closes the requests without an answer. */
  release(): void {
    for (const response of this.#held) response.destroy()
    this.#held.clear()
  }

  close(): Promise<void> {
    this.#server.closeAllConnections()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }

  #serve(incoming: IncomingMessage, response: ServerResponse, body: string): void {
    const { pathname: path, searchParams: query } = new URL(incoming.url ?? '/', 'http://psp')
    const method = incoming.method ?? ''
    if (path.startsWith('/pay/')) return void this.#servePage(path.slice('/pay/'.length), query.get('do'), response)
    this.requests.push(`${method} ${path}`)
    if (this.switches.hang) return this.#hold(response)
    const received = { method, path, query, headers: incoming.headers, body }
    const answer =
      this.switches.status === undefined ? this.#books.answer(received) : this.#books.refusal(this.switches.status)
    if (this.switches.hangAfterwards && method !== 'GET' && answer.isQuick !== true) return this.#hold(response)
    this.#options.onRequest?.(`${method} ${path} ${answer.status}`)
    send(response, answer)
  }

  #hold(response: ServerResponse): void {
    this.#held.add(response)
    response.once('close', () => this.#held.delete(response))
  }

  async #servePage(sessionId: string, wish: string | null, response: ServerResponse): Promise<void> {
    const status = ({ pay: 'paid', cancel: 'cancelled', expire: 'expired' } as const)[wish ?? '']
    const session = this.#books.sessions.get(sessionId)
    if (session && status)
      this.#options.onRequest?.(
        `${sessionId} ${status}: notified ${(await this.end(sessionId, status).catch(() => ['nobody'])).join(', ')}`,
      )
    const links = ['pay', 'cancel', 'expire'].map((each) => `<a href="?do=${each}">${each}</a>`).join(' · ')
    const text = session
      ? `<p>${this.#options.dialect}: ${session.amountCent / 100} ${session.currency}, ${session.status}</p><p>${links}</p>`
      : '<p>no such session</p>'
    response
      .writeHead(session ? 200 : 404, { 'content-type': 'text/html; charset=utf-8' })
      .end(`<!doctype html><title>A simulated provider</title>${text}`)
  }

  async #deliver({ body, headers }: PspNotification): Promise<number[]> {
    const statuses: number[] = []
    for (let i = 0; i < this.switches.copies; i++) statuses.push(await post(this.#options.notifyUrl(), body, headers))
    return statuses
  }
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
