import type {
  PspAnswer,
  PspDesk,
  PspDialect,
  PspNotification,
  PspRequest,
  SimulatedRefund,
  SimulatedSession,
} from './psp-desk.ts'
import { ADYEN } from './psps/adyen.ts'
import { CUSTOM } from './psps/custom.ts'
import { KLARNA } from './psps/klarna.ts'
import { MOLLIE } from './psps/mollie.ts'
import { PAYPAL } from './psps/paypal.ts'
import { STRIPE } from './psps/stripe.ts'
import { SUMUP } from './psps/sumup.ts'
import { WORLDLINE } from './psps/worldline.ts'

/** The simulated providers. The file of each protocol names its public documentation. */
const DIALECTS = {
  custom: CUSTOM,
  stripe: STRIPE,
  mollie: MOLLIE,
  adyen: ADYEN,
  paypal: PAYPAL,
  klarna: KLARNA,
  sumup: SUMUP,
  worldline: WORLDLINE,
} satisfies Record<string, PspDialect>
export type PspName = keyof typeof DIALECTS
export const PSP_NAMES = Object.keys(DIALECTS) as [PspName, ...PspName[]]

export interface PspBooksOptions {
  readonly dialect: PspName
  /** Number before the first id. Default: 0. A provider that starts again must not give an id twice. */
  readonly lastNumber?: number
  /**
   * Key that signs notifications; `apiKey` is the key of requests. Default of both keys: the example of the provider's
   * protocol.
   */
  readonly secret?: string
  readonly apiKey?: string
  /** Wall clock for signatures, ms since 1970. */
  nowMs(): number
}

/**
 * The sessions and refunds of one simulated payment service provider. No real money moves. Requests to one path with
 * the same idempotency key are executed once, and receive the same answer until the key expires.
 */
export class PspBooks {
  readonly #options: PspBooksOptions
  readonly #dialect: PspDialect
  readonly sessions = new Map<string, SimulatedSession>()
  readonly refunds: SimulatedRefund[] = []
  readonly #answered = new Map<string, { answer: PspAnswer; atMs: number }>()
  readonly #desk: PspDesk & { baseUrl: string }

  constructor(options: PspBooksOptions) {
    this.#options = options
    this.#dialect = DIALECTS[options.dialect]
    let count = options.lastNumber ?? 0
    this.#desk = {
      baseUrl: '',
      secret: options.secret ?? this.#dialect.example.secret,
      apiKey: options.apiKey ?? this.#dialect.example.apiKey,
      sessions: this.sessions,
      refunds: this.refunds,
      nowMs: () => options.nowMs(),
      next: () => ++count,
      open: (wish) => {
        const session: SimulatedSession = { charge: '', ...wish, status: 'open', paidCent: 0 }
        this.sessions.set(session.id, session)
        return session
      },
      capture: (session) => {
        session.status = 'paid'
      },
      refundPayment: (session, amountCent, { id, ...names }) => {
        const gone = this.refunds
          .filter((refund) => refund.sessionId === session?.id && refund.status === 'done')
          .reduce((sum, refund) => sum + refund.amountCent, 0)
        if (session?.status !== 'paid' || !(amountCent > 0) || gone + amountCent > session.paidCent) return undefined
        const refund: SimulatedRefund = { id, sessionId: session.id, amountCent, ...names, status: 'done' }
        this.refunds.push(refund)
        return refund
      },
    }
  }

  get baseUrl(): string {
    return this.#desk.baseUrl
  }

  /** Sets the base address, which is empty at first. */
  moveTo(baseUrl: string): void {
    this.#desk.baseUrl = baseUrl
  }

  /** The settings for `configurePSP`. */
  config(): Record<string, string> {
    return this.#dialect.configOf(this.#desk)
  }

  /** Executes a request, once for each idempotency key. */
  answer(received: PspRequest): PspAnswer {
    if (!this.#dialect.isAllowed(received, this.#desk)) return { status: 401, body: this.#dialect.errorOf(401) }
    const key = this.#dialect.keyHeader === undefined ? '' : String(received.headers[this.#dialect.keyHeader] ?? '')
    const known = key === '' ? undefined : this.#answered.get(`${received.path} ${key}`)
    if (known && this.#options.nowMs() - known.atMs <= (this.#dialect.keyLifeMs ?? Infinity)) return known.answer
    const answer = this.#dialect.answer(received, key, this.#desk)
    if (key !== '') this.#answered.set(`${received.path} ${key}`, { answer, atMs: this.#options.nowMs() })
    return answer
  }

  /** The provider's error response with this status. Executes nothing. */
  refusal(status: number): PspAnswer {
    return { status, body: this.#dialect.errorOf(status) }
  }

  /**
   * Ends a session as the shopper does on the provider's page. Returns the notification; undefined if this provider
   * sends none.
   */
  end(sessionId: string, status: 'paid' | 'cancelled' | 'expired', amountCent?: number): PspNotification | undefined {
    const session = this.#sessionOf(sessionId)
    if (status === 'paid') {
      session.paidCent = amountCent ?? session.amountCent
      if (session.status !== 'paid') session.status = this.#dialect.capturesLater ? 'approved' : 'paid'
    } else session.status = status
    return this.#dialect.notificationOf(session, this.#desk)
  }

  /** A forged notification which says that an open session is paid. The notification is signed with a wrong secret. */
  forge(sessionId: string): PspNotification | undefined {
    const session = this.#sessionOf(sessionId)
    const paid: SimulatedSession = { ...session, status: 'paid', paidCent: session.amountCent }
    return this.#dialect.notificationOf(paid, {
      ...this.#desk,
      secret: this.#desk.secret.replace(/.$/, (last) => (last === '0' ? '1' : '0')),
    })
  }

  /** Fails an accepted refund later. Returns the notification; undefined if this provider sends none. */
  failRefund(refundId: string): PspNotification | undefined {
    const refund = this.refunds.find((each) => each.id === refundId)
    const session = refund && this.sessions.get(refund.sessionId)
    if (!refund || !session || !this.#dialect.refundNotificationOf) return undefined
    refund.status = 'failed'
    return this.#dialect.refundNotificationOf(refund, session, this.#desk)
  }

  /** The notification about the present state of a refund; undefined if this provider sends none. */
  refundNotice(refundId: string): PspNotification | undefined {
    const refund = this.refunds.find((each) => each.id === refundId)
    return refund && this.#notificationOf(refund)
  }

  /**
   * Moves money back without a request of the merchant's server: a refund in the dashboard, or a dispute. Returns its id
   * and its notification; undefined if this provider sends none.
   */
  moveBack(
    kind: 'refund' | 'dispute',
    sessionId: string,
    amountCent: number,
  ): { id: string; notification: PspNotification | undefined } {
    const session = this.#sessionOf(sessionId)
    const number = this.#desk.next()
    const id = this.#dialect.outsideId?.(session, number) ?? `OUT${number}`
    const moved: SimulatedRefund = { id, sessionId, amountCent, key: '', outside: kind, status: 'done' }
    this.refunds.push(moved)
    return { id, notification: this.#notificationOf(moved) }
  }

  /** Gives the merchant the money of a refund or dispute again: the bank refused it, or the merchant won. */
  giveBack(id: string): PspNotification | undefined {
    const moved = this.refunds.find((each) => each.id === id)
    if (!moved) throw new Error(`no refund ${id}`)
    moved.status = 'failed'
    return this.#notificationOf(moved)
  }

  /** The shopper pays the session again. Returns the notification; undefined if this provider sends none. */
  payAgain(sessionId: string): PspNotification | undefined {
    const session = this.#sessionOf(sessionId)
    return this.#dialect.notificationOf(secondOf(session), this.#desk)
  }

  /** Refunds the second payment of a session in the dashboard. */
  refundSecond(sessionId: string): PspNotification | undefined {
    const session = this.#sessionOf(sessionId)
    const id = `OUT${this.#desk.next()}`
    const moved: SimulatedRefund = { id, sessionId, amountCent: session.paidCent, key: '', status: 'done' }
    return this.#notificationOf(moved, secondOf(session))
  }

  #notificationOf(moved: SimulatedRefund, session = this.#sessionOf(moved.sessionId)): PspNotification | undefined {
    const make = moved.outside === 'dispute' ? this.#dialect.disputeNotificationOf : this.#dialect.refundNotificationOf
    return make?.call(this.#dialect, moved, session, this.#desk)
  }

  #sessionOf(sessionId: string): SimulatedSession {
    const session = this.sessions.get(sessionId)
    if (!session) throw new Error(`no session ${sessionId}`)
    return session
  }
}

/** The second payment of a session. */
function secondOf(session: SimulatedSession): SimulatedSession {
  return { ...session, charge: `${session.charge || session.id}B` }
}
