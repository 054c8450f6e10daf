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

/**
 * The books of a payment service provider that takes no money. It speaks as one of these; their files name the public
 * documentation that they were written from. Like real ones it answers the same idempotency key the same way, and does a thing once.
 */
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
export const PSP_NAMES = Object.keys(DIALECTS) as PspName[]

export interface PspBooksOptions {
  readonly dialect: PspName
  /** What it signs notifications with, and what requests must bear; by default an example. */
  readonly secret?: string
  readonly apiKey?: string
  /** For signatures, ms since 1970. */
  nowMs(): number
}

export interface PspBooks {
  readonly sessions: ReadonlyMap<string, SimulatedSession>
  readonly refunds: readonly SimulatedRefund[]
  readonly baseUrl: string
  /** Where it is to be found; before, it has no address. */
  moveTo(baseUrl: string): void
  /** What `configurePSP` is told of it. */
  config(): Record<string, string>
  /** Does what it is asked, once for each idempotency key. */
  answer(request: PspRequest): PspAnswer
  /** As it refuses, with this status: nothing is done. */
  refusal(status: number): PspAnswer
  /** The shopper does this at the provider's page. Answers the notification of it; undefined where this provider tells nobody. */
  end(sessionId: string, status: 'paid' | 'cancelled' | 'expired', amountCent?: number): PspNotification | undefined
  /** That an open session is paid, as told by somebody who does not know the secret. */
  forge(sessionId: string): PspNotification | undefined
  /** A refund that was taken fails after all. Answers the notification of it; undefined where this provider tells nobody. */
  failRefund(refundId: string): PspNotification | undefined
}

/** New books of a provider. */
export function pspBooks(options: PspBooksOptions): PspBooks {
  const dialect: PspDialect = DIALECTS[options.dialect]
  const { nowMs, secret = dialect.example.secret, apiKey = dialect.example.apiKey } = options
  const sessions = new Map<string, SimulatedSession>()
  const refunds: SimulatedRefund[] = []
  const answered = new Map<string, { answer: PspAnswer; atMs: number }>()
  let count = 0
  const desk: PspDesk & { baseUrl: string } = {
    baseUrl: '',
    secret,
    apiKey,
    sessions,
    refunds,
    nowMs,
    next: () => ++count,
    open(wish) {
      const session: SimulatedSession = { charge: '', ...wish, status: 'open', paidCent: 0 }
      sessions.set(session.id, session)
      return session
    },
    capture(session) {
      session.status = 'paid'
    },
    giveBack(session, amountCent, { id, ...names }) {
      const gone = refunds
        .filter((refund) => refund.sessionId === session?.id && refund.status === 'done')
        .reduce((sum, refund) => sum + refund.amountCent, 0)
      if (session?.status !== 'paid' || !(amountCent > 0) || gone + amountCent > session.paidCent) return undefined
      const refund: SimulatedRefund = { id, sessionId: session.id, amountCent, ...names, status: 'done' }
      refunds.push(refund)
      return refund
    },
  }

  function sessionOf(sessionId: string): SimulatedSession {
    const session = sessions.get(sessionId)
    if (!session) throw new Error(`no session ${sessionId}`)
    return session
  }

  return {
    sessions,
    refunds,
    get baseUrl() {
      return desk.baseUrl
    },
    moveTo(baseUrl) {
      desk.baseUrl = baseUrl
    },
    config: () => dialect.configOf(desk),
    answer(asked) {
      if (!dialect.isAllowed(asked, desk)) return { status: 401, body: dialect.errorOf(401) }
      const key = dialect.keyHeader === undefined ? '' : String(asked.headers[dialect.keyHeader] ?? '')
      const known = key === '' ? undefined : answered.get(`${asked.path} ${key}`)
      if (known && nowMs() - known.atMs <= (dialect.keyLifeMs ?? Infinity)) return known.answer
      const answer = dialect.answer(asked, key, desk)
      if (key !== '') answered.set(`${asked.path} ${key}`, { answer, atMs: nowMs() })
      return answer
    },
    refusal: (status) => ({ status, body: dialect.errorOf(status) }),
    end(sessionId, status, amountCent) {
      const session = sessionOf(sessionId)
      if (status === 'paid') {
        session.paidCent = amountCent ?? session.amountCent
        if (session.status !== 'paid') session.status = dialect.capturesLater ? 'approved' : 'paid'
      } else session.status = status
      return dialect.notificationOf(session, desk)
    },
    forge(sessionId) {
      const session = sessionOf(sessionId)
      const paid: SimulatedSession = { ...session, status: 'paid', paidCent: session.amountCent }
      return dialect.notificationOf(paid, {
        ...desk,
        secret: desk.secret.replace(/.$/, (last) => (last === '0' ? '1' : '0')),
      })
    },
    failRefund(refundId) {
      const refund = refunds.find((each) => each.id === refundId)
      const session = refund && sessions.get(refund.sessionId)
      if (!refund || !session || !dialect.refundNotificationOf) return undefined
      refund.status = 'failed'
      return dialect.refundNotificationOf(refund, session, desk)
    },
  }
}
