import { createHmac } from 'node:crypto'
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'

/**
 * A payment service provider that takes no money. It speaks our `custom` protocol, and the few calls of Stripe Checkout
 * and Mollie that a shop needs, over real HTTP:
 *
 *   POST /sessions · GET /sessions/{id} · POST /refunds
 *   POST /v1/checkout/sessions · GET /v1/checkout/sessions/{id} · POST /v1/refunds
 *   POST /v2/payments · GET /v2/payments/{id} · POST /v2/payments/{id}/refunds
 *
 * Like real ones it answers the same Idempotency-Key the same way, and does a thing once.
 */
export interface SimulatedPsp {
  readonly baseUrl: string
  readonly sessions: ReadonlyMap<string, SimulatedSession>
  readonly refunds: readonly SimulatedRefund[]
  /** Requests that arrived, such as `POST /sessions`. */
  readonly requests: readonly string[]
  readonly switches: PspSwitches
  /** The shopper does this at the provider's page; then the notification goes out. Answers the statuses that came back. */
  end(sessionId: string, status: 'paid' | 'cancelled' | 'expired', amountCent?: number): Promise<number[]>
  /** Sends the notifications that were kept back, the newest first. */
  sendKept(): Promise<number[]>
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

export interface SimulatedSession {
  readonly id: string
  readonly reference: string
  readonly amountCent: number
  readonly currency: string
  readonly key: string
  status: 'open' | 'paid' | 'cancelled' | 'expired'
  paidCent: number
}

export interface SimulatedRefund {
  readonly id: string
  readonly sessionId: string
  readonly amountCent: number
  readonly key: string
}

export interface PspOptions {
  /** How it speaks in notifications. */
  readonly dialect: 'custom' | 'stripe' | 'mollie'
  /** What it signs notifications with: `whsec_…`. */
  readonly secret: string
  /** What requests must bear. */
  readonly apiKey: string
  /** Where notifications go. */
  notifyUrl(): string
  /** For signatures, ms since 1970. */
  nowMs(): number
}

type Answer = { status: number; body: unknown }

/** A provider on a free port of this machine. */
export async function simulatedPsp(options: PspOptions): Promise<SimulatedPsp> {
  const sessions = new Map<string, SimulatedSession>()
  const refunds: SimulatedRefund[] = []
  const requests: string[] = []
  const answered = new Map<string, Answer>()
  const kept: string[] = []
  const held = new Set<ServerResponse>()
  const switches: PspSwitches = { hang: false, hangAfterwards: false, status: undefined, keep: false, copies: 1 }
  let count = 0

  function serve(incoming: IncomingMessage, response: ServerResponse, body: string): void {
    const path = new URL(incoming.url ?? '/', 'http://psp').pathname
    requests.push(`${incoming.method} ${path}`)
    if (switches.hang) return void held.add(response)
    if (switches.status !== undefined) return send(response, { status: switches.status, body: { error: 'switched on' } })
    if (incoming.headers.authorization !== `Bearer ${options.apiKey}`) return send(response, { status: 401, body: { error: 'wrong key' } })
    const key = String(incoming.headers['idempotency-key'] ?? '')
    const answer = (key !== '' && answered.get(`${path} ${key}`)) || carryOut(incoming.method ?? '', path, key, body)
    if (key !== '') answered.set(`${path} ${key}`, answer)
    if (switches.hangAfterwards) return void held.add(response)
    send(response, answer)
  }

  function carryOut(method: string, path: string, key: string, body: string): Answer {
    const isStripe = path.startsWith('/v1/')
    if (path.startsWith('/v2/')) return carryOutMollie(method, path, key, body)
    const sessionId = /^(?:\/v1\/checkout)?\/sessions\/([^/]+)$/.exec(path)?.[1]
    if (method === 'GET' && sessionId !== undefined) {
      const session = sessions.get(sessionId)
      return session ? { status: 200, body: shown(session, isStripe) } : { status: 404, body: { error: 'no such session' } }
    }
    const form = new URLSearchParams(isStripe ? body : '')
    const json = (isStripe ? {} : JSON.parse(body || '{}')) as { reference?: string; amountCent?: number; currency?: string; sessionId?: string }
    if (path.endsWith('/sessions')) {
      const session: SimulatedSession = {
        id: `cs_${++count}`,
        reference: json.reference ?? form.get('client_reference_id') ?? '',
        amountCent: json.amountCent ?? Number(form.get('line_items[0][price_data][unit_amount]')),
        currency: json.currency ?? (form.get('line_items[0][price_data][currency]') ?? '').toUpperCase(),
        key,
        status: 'open',
        paidCent: 0,
      }
      sessions.set(session.id, session)
      return { status: 200, body: shown(session, isStripe) }
    }
    if (!path.endsWith('/refunds')) return { status: 404, body: { error: 'no such path' } }
    return giveBack(sessions.get(json.sessionId ?? (form.get('payment_intent') ?? '').replace('pi_', '')), json.amountCent ?? Number(form.get('amount')), key)
  }

  function carryOutMollie(method: string, path: string, key: string, body: string): Answer {
    const [, , , id = '', what] = path.split('/')
    const session = sessions.get(id)
    const { amount, metadata } = JSON.parse(body || '{}') as { amount?: { value: string; currency: string }; metadata?: { reference: string } }
    const amountCent = Math.round(Number(amount?.value) * 100)
    if (id !== '' && !session) return { status: 404, body: { status: 404 } }
    if (session && method === 'GET') return { status: 200, body: shownAsMollie(session) }
    if (what === 'refunds') return giveBack(session, amountCent, key)
    const made: SimulatedSession = { id: `tr_${++count}`, reference: metadata?.reference ?? '', amountCent, currency: amount?.currency ?? '', key, status: 'open', paidCent: 0 }
    sessions.set(made.id, made)
    return { status: 201, body: shownAsMollie(made) }
  }

  function shownAsMollie({ id, status, amountCent, paidCent, currency }: SimulatedSession): object {
    const value = ((status === 'paid' ? paidCent : amountCent) / 100).toFixed(2)
    return { resource: 'payment', id, status: status === 'cancelled' ? 'canceled' : status, amount: { value, currency }, _links: { checkout: { href: `${psp.baseUrl}/pay/${id}`, type: 'text/html' } } }
  }

  function giveBack(paid: SimulatedSession | undefined, amountCent: number, key: string): Answer {
    const givenBack = refunds.filter((refund) => refund.sessionId === paid?.id).reduce((sum, refund) => sum + refund.amountCent, 0)
    if (paid?.status !== 'paid' || givenBack + amountCent > paid.paidCent) return { status: 400, body: { error: 'nothing to refund' } }
    const refund = { id: `re_${++count}`, sessionId: paid.id, amountCent, key }
    refunds.push(refund)
    return { status: 200, body: { id: refund.id, status: 'succeeded' } }
  }

  function shown(session: SimulatedSession, isStripe: boolean): object {
    const url = `${psp.baseUrl}/pay/${session.id}`
    if (!isStripe) return { id: session.id, url, status: session.status, reference: session.reference, amountCent: session.status === 'paid' ? session.paidCent : null, currency: session.currency }
    return {
      id: session.id,
      object: 'checkout.session',
      url,
      client_reference_id: session.reference,
      status: session.status === 'paid' ? 'complete' : session.status === 'open' ? 'open' : 'expired',
      payment_status: session.status === 'paid' ? 'paid' : 'unpaid',
      payment_intent: session.status === 'paid' ? `pi_${session.id}` : null,
      amount_total: session.status === 'paid' ? session.paidCent : session.amountCent,
      currency: session.currency.toLowerCase(),
    }
  }

  function notificationOf(session: SimulatedSession): string {
    if (options.dialect === 'mollie') return `id=${session.id}`
    if (options.dialect === 'custom') return JSON.stringify({ sessionId: session.id, ...shown(session, false) })
    const type = session.status === 'paid' ? 'checkout.session.completed' : 'checkout.session.expired'
    return JSON.stringify({ id: `evt_${++count}`, object: 'event', type, data: { object: shown(session, true) } })
  }

  async function deliver(body: string): Promise<number[]> {
    const statuses: number[] = []
    for (let i = 0; i < switches.copies; i++) statuses.push(await post(options.notifyUrl(), body, signed(body, options)))
    return statuses
  }

  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => serve(incoming, response, Buffer.concat(chunks).toString('utf8')))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()

  const psp: SimulatedPsp = {
    baseUrl: `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`,
    sessions,
    refunds,
    requests,
    switches,
    async end(sessionId, status, amountCent) {
      const session = sessions.get(sessionId)
      if (!session) throw new Error(`no session ${sessionId}`)
      session.status = status
      if (status === 'paid') session.paidCent = amountCent ?? session.amountCent
      const body = notificationOf(session)
      if (!switches.keep) return deliver(body)
      kept.push(body)
      return []
    },
    async sendKept() {
      const statuses: number[] = []
      for (const body of kept.splice(0).reverse()) statuses.push(...(await deliver(body)))
      return statuses
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

function send(response: ServerResponse, { status, body }: Answer): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

/** The signature of a notification: Standard Webhooks, or Stripe's. */
function signed(body: string, { dialect, secret, nowMs }: PspOptions): Record<string, string> {
  const seconds = String(Math.floor(nowMs() / 1_000))
  if (dialect === 'mollie') return { 'content-type': 'application/x-www-form-urlencoded' }
  if (dialect === 'stripe') return { 'stripe-signature': `t=${seconds},v1=${createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')}` }
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  const signature = createHmac('sha256', key).update(`msg_1.${seconds}.${body}`).digest('base64')
  return { 'webhook-id': 'msg_1', 'webhook-timestamp': seconds, 'webhook-signature': `v1,${signature}` }
}

function post(url: string, body: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method: 'POST', headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...headers } }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0))
    })
    outgoing.on('error', reject).end(body)
  })
}
