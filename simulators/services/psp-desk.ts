import type { IncomingHttpHeaders } from 'node:http'

/** What a simulated provider keeps, and what each of them answers in its own words (psps/). */

export interface SimulatedSession {
  readonly id: string
  readonly reference: string
  readonly amountCent: number
  readonly currency: string
  readonly key: string
  /** The ids of the two sides of one payment, where a provider has several: `charge`. */
  readonly charge: string
  status: 'open' | 'approved' | 'paid' | 'cancelled' | 'expired'
  paidCent: number
}

export interface SimulatedRefund {
  readonly id: string
  readonly sessionId: string
  readonly amountCent: number
  readonly key: string
  /** What the merchant calls it, where a provider keeps that. */
  readonly reference?: string
  status: 'done' | 'failed'
}

export interface PspRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface PspAnswer {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** Nothing was begun by it that a time-out would leave in doubt: a token, a question. */
  readonly isQuick?: boolean
}

export interface PspNotification {
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

/** One provider's books. */
export interface PspDesk {
  readonly baseUrl: string
  /** What it signs notifications with. */
  readonly secret: string
  /** What requests must prove to know. */
  readonly apiKey: string
  readonly sessions: ReadonlyMap<string, SimulatedSession>
  readonly refunds: readonly SimulatedRefund[]
  nowMs(): number
  /** A number that was not given before. */
  next(): number
  open(wish: {
    id: string
    reference: string
    amountCent: number
    currency: string
    key: string
    charge?: string
  }): SimulatedSession
  /** The shopper's money is taken: what was approved is captured. */
  capture(session: SimulatedSession): void
  /** undefined when more would go back than was paid. */
  giveBack(
    session: SimulatedSession | undefined,
    amountCent: number,
    refund: { id: string; key: string; reference?: string },
  ): SimulatedRefund | undefined
}

/** How one provider speaks. */
export interface PspDialect {
  /** Credentials of the right form, for tests and demonstrations. No secret: its notifications are not signed. */
  readonly example: { readonly apiKey: string; readonly secret: string }
  /** The header of its idempotency keys; none: it knows none. */
  readonly keyHeader?: string
  /** For so long it remembers them, ms; none: for ever. */
  readonly keyLifeMs?: number
  /** What `configurePSP` is told. */
  configOf(desk: PspDesk): Record<string, string>
  isAllowed(request: PspRequest, desk: PspDesk): boolean
  /** The answer to one who is not allowed, or whom the simulator was told to refuse. */
  errorOf(status: number): unknown
  answer(request: PspRequest, key: string, desk: PspDesk): PspAnswer
  /** Whether the shopper's consent must be captured by the merchant: until then the session is `approved`. */
  readonly capturesLater?: boolean
  /** undefined where this provider tells nobody. */
  notificationOf(session: SimulatedSession, desk: PspDesk): PspNotification | undefined
  /** Tells what became of a refund; none where the provider tells nobody. */
  refundNotificationOf?(refund: SimulatedRefund, session: SimulatedSession, desk: PspDesk): PspNotification
}

/** The id in a path such as `/v1/sessions/{id}/refunds`. */
export function idIn(path: string, pattern: RegExp): string | undefined {
  return pattern.exec(path)?.[1]
}

/** The JSON of a request; an empty object when it is none. */
export function jsonOf<T>(body: string): Partial<T> {
  try {
    return JSON.parse(body || '{}') as Partial<T>
  } catch {
    return {}
  }
}

export const JSON_TYPE = { 'content-type': 'application/json' }
