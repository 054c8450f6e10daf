import {
  OutgoingFault,
  type OutgoingAnswer,
  type OutgoingHttp,
} from '../../../../cloud/platform/outgoing/outgoing-http.ts'
import { PspBooks, type PspName } from '../../../../simulators/services/psp-books.ts'
import type { PspNotification } from '../../../../simulators/services/psp-desk.ts'
import { CLOUD_ORIGIN, type CloudNode } from './cloud-node.ts'
import type { Core } from '../virtual/core.ts'
import { request } from '../virtual/http.ts'
import type { Shop } from './initial-shop.ts'
import { newWire, type Wire } from '../virtual/wire.ts'
import type { Chance } from '../virtual/chance.ts'

/**
 * The payment provider of a live shop. Its books (simulators/services/psp-books.ts) never fail, so they show the true
 * state of the money. Requests of the cloud to the provider may fail. Notifications to the cloud may be lost, or arrive
 * late, twice or reordered.
 */
export interface Provider {
  readonly name: PspName
  readonly books: PspBooks
  readonly outgoing: OutgoingHttp
  /** Wire for notifications to the cloud. */
  readonly wire: Wire
  /** Probability of a failure, 0 to 1. */
  failureRate: number
  /** Ends all faults of the provider. Afterwards, banks may still return refunds. */
  heal(): void
  /** Completes or cancels the payment of this page. Returns false if the page does not exist. */
  act(url: string, what: 'paid' | 'cancelled', amountCent?: number): boolean
}

const ORIGIN = 'http://psp.sim'
/** Delays before a notification is sent again, ms. Real providers retry for days. */
const NOTIFICATION_RETRY_MS = [10_000, 30_000, 120_000, 300_000, 600_000, 600_000, 1_200_000, 1_800_000]
const ANSWER_WITHIN_MS = 10_000
/** Share of notifications that are never sent, so that the cloud must query the provider itself. */
const LOST_NOTIFICATION_SHARE = 0.1
/** Share of refunds that the bank returns, and the delay, ms. In reality the return takes days, but a run is short. */
const BOUNCED_REFUND_SHARE = 0.3
const BOUNCE_MS = { from: 1_000, to: 90_000 }

/** Creates a provider without faults. */
export function provider(core: Core, name: PspName, shop: Pick<Shop, 'storeId'>, cloud: () => CloudNode): Provider {
  return new SimulatedProvider(core, name, shop, cloud)
}

class SimulatedProvider implements Provider {
  readonly #core: Core
  readonly name: PspName
  readonly #shop: Pick<Shop, 'storeId'>
  readonly #cloud: () => CloudNode
  readonly #chance: Chance
  readonly wire: Wire
  readonly books: PspBooks
  #failureRate = 0
  #lostShare = LOST_NOTIFICATION_SHARE
  readonly outgoing: OutgoingHttp = {
    send: (request, signal) =>
      new Promise((resolve, reject) => {
        const how = this.#chance.happens(this.#failureRate)
          ? this.#chance.one(['refused', 'unavailable', 'silent', 'lost', 'garbled'] as const)
          : 'good'
        if (how !== 'good') this.#core.trace.add('provider', how)
        signal.addEventListener('abort', () => reject(new OutgoingFault('timeout', 'no answer in time')), {
          once: true,
        })
        if (how === 'silent') return
        this.#core.scheduler.after(this.#chance.between(5, 400), () => {
          if (how === 'refused') return reject(new OutgoingFault('connection_refused', 'refused'))
          if (how === 'unavailable') return resolve({ status: 503, headers: {}, body: new Uint8Array(), isCut: false })
          const good = this.#answer(request)
          if (how === 'lost') return
          const body = how === 'garbled' ? new TextEncoder().encode('<html>Maintenance</html>') : good.body
          this.#core.scheduler.after(this.#chance.between(5, 400), () =>
            resolve({ ...good, ...(how === 'garbled' && { status: 200, headers: {} }), body }),
          )
        })
      }),
  }

  constructor(core: Core, name: PspName, shop: Pick<Shop, 'storeId'>, cloud: () => CloudNode) {
    this.#core = core
    this.name = name
    this.#shop = shop
    this.#cloud = cloud
    this.#chance = this.#core.chance.fork('provider')
    this.wire = newWire('provider', this.#core)
    this.books = new PspBooks({ dialect: this.name, nowMs: () => this.#core.scheduler.nowMs })
    this.books.moveTo(ORIGIN)
  }

  set failureRate(to: number) {
    this.#failureRate = to
  }

  heal(): void {
    this.#failureRate = 0
    this.#lostShare = 0
  }

  act(url: string, what: 'paid' | 'cancelled', amountCent?: number): boolean {
    const id = url.startsWith(`${ORIGIN}/pay/`) ? url.slice(`${ORIGIN}/pay/`.length) : ''
    const session = this.books.sessions.get(id)
    if (!session) return false
    // The state of a page that was paid or cancelled does not change again.
    if (session.status !== 'open') return true
    const notification = this.books.end(id, what, amountCent)
    this.#core.trace.add('provider', `${id.slice(-12)} ${what}`)
    if (notification && !this.#chance.happens(this.#lostShare)) this.#notify(() => notification)
    return true
  }

  /** Sends a notification. `sign` creates a new signature for each attempt, because signatures expire. */
  #notify(sign: () => PspNotification | undefined, attempt = 0): void {
    const again = () => {
      const waitMs = NOTIFICATION_RETRY_MS[attempt]
      if (waitMs !== undefined) this.#core.scheduler.after(waitMs, () => this.#notify(sign, attempt + 1))
    }
    const notification = sign()
    if (!notification) return
    const { body, headers } = notification
    if (this.#chance.happens(this.#failureRate)) return again()
    const gaveUp = new AbortController()
    const cancel = this.#core.scheduler.after(ANSWER_WITHIN_MS, () => gaveUp.abort())
    const call = {
      url: `${CLOUD_ORIGIN}/api/v1/notify/${this.name}/${this.#shop.storeId}`,
      method: 'POST',
      headers: { ...headers },
      body,
    }
    request(call, {
      wire: this.wire,
      server: this.#cloud(),
      scheduler: this.#core.scheduler,
      signal: gaveUp.signal,
    }).then(
      ({ status }) => {
        cancel()
        this.#core.trace.add('provider', `notified: ${status}`)
        if (status < 200 || status > 299) again()
      },
      () => {
        cancel()
        again()
      },
    )
  }

  /** The customer's bank returns the refund. The provider notifies the cloud until the cloud acknowledges. */
  #bounce(refundId: string): void {
    if (!this.books.failRefund(refundId)) return
    this.#core.trace.add('provider', `${refundId} came back`)
    this.#notify(() => this.books.failRefund(refundId))
  }

  #answer(request: Parameters<OutgoingHttp['send']>[0]): OutgoingAnswer {
    const url = new URL(request.url)
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([header, value]) => [header.toLowerCase(), value]),
    )
    const before = this.books.refunds.length
    const answered = this.books.answer({
      method: request.method,
      path: url.pathname,
      query: url.searchParams,
      headers,
      body: request.body ?? '',
    })
    for (const { id } of this.books.refunds.slice(before))
      if (this.#chance.happens(BOUNCED_REFUND_SHARE))
        this.#core.scheduler.after(this.#chance.between(BOUNCE_MS.from, BOUNCE_MS.to), () => this.#bounce(id))
    this.#core.trace.add('provider', `${request.method} ${url.pathname.slice(0, 40)} ${answered.status}`)
    return {
      status: answered.status,
      headers: { ...answered.headers },
      body: new TextEncoder().encode(answered.body === undefined ? '' : JSON.stringify(answered.body)),
      isCut: false,
    }
  }
}
