import type { IncomingHttpHeaders } from 'node:http'

/** One payment at a simulated provider. The protocols in psps/ encode the payment for each provider. */

export interface SimulatedSession {
  readonly id: string
  readonly reference: string
  readonly amountCent: number
  readonly currency: string
  readonly key: string
  /** Second id of the payment, if the provider has two. */
  readonly charge: string
  status: 'open' | 'approved' | 'paid' | 'cancelled' | 'expired'
  paidCent: number
}

export interface SimulatedRefund {
  readonly id: string
  readonly sessionId: string
  readonly amountCent: number
  readonly key: string
  /** The merchant's reference, if the provider stores one. */
  readonly reference?: string
  /** Set if the merchant's server did not request it: a refund in the dashboard, or a dispute. */
  readonly outside?: 'refund' | 'dispute'
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
  /**
   * True if a lost answer to this request causes no unresolved payment, for example the answer to a token request.
   * `hangAfterwards` then has no effect.
   */
  readonly isQuick?: boolean
}

export interface PspNotification {
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

/** State of one provider. */
export interface PspDesk {
  readonly baseUrl: string
  /** Key of the notifications' signatures. */
  readonly secret: string
  /** Key that authenticates requests. */
  readonly apiKey: string
  readonly sessions: ReadonlyMap<string, SimulatedSession>
  readonly refunds: readonly SimulatedRefund[]
  nowMs(): number
  /** A unique number. */
  next(): number
  open(wish: {
    id: string
    reference: string
    amountCent: number
    currency: string
    key: string
    charge?: string
  }): SimulatedSession
  /** Captures an approved payment. */
  capture(session: SimulatedSession): void
  /**
   * Refunds a part of a payment. Returns undefined if the payment is not paid, or if all refunds together would exceed
   * it.
   */
  refundPayment(
    session: SimulatedSession | undefined,
    amountCent: number,
    refund: { id: string; key: string; reference?: string },
  ): SimulatedRefund | undefined
}

/** Protocol of one provider. */
export interface PspDialect {
  /** Valid credentials for tests and demonstrations. With an empty secret, notifications are not signed. */
  readonly example: { readonly apiKey: string; readonly secret: string }
  /** Header of idempotency keys; undefined if the provider has none. */
  readonly keyHeader?: string
  /** Lifetime of idempotency keys, ms. Undefined if they never expire. */
  readonly keyLifeMs?: number
  /** The settings for `configurePSP`. */
  configOf(desk: PspDesk): Record<string, string>
  isAllowed(request: PspRequest, desk: PspDesk): boolean
  /** Body of an error with this status. */
  errorOf(status: number): unknown
  answer(request: PspRequest, key: string, desk: PspDesk): PspAnswer
  /** True if the merchant must capture an approved payment. Until the capture the session is `approved`. */
  readonly capturesLater?: boolean
  /** The notification about the state of a session; undefined if the provider sends none. */
  notificationOf(session: SimulatedSession, desk: PspDesk): PspNotification | undefined
  /** Id of a refund of this session that the merchant's server did not request. Default: `OUT` and the number. */
  outsideId?(session: SimulatedSession, number: number): string
  /** The notification of a dispute in its state: `done` if it took the money, `failed` if the merchant won it. */
  disputeNotificationOf?(dispute: SimulatedRefund, session: SimulatedSession, desk: PspDesk): PspNotification
  /** The notification of a refund; undefined if the provider sends none. */
  refundNotificationOf?(refund: SimulatedRefund, session: SimulatedSession, desk: PspDesk): PspNotification
}

/** The id in a path such as `/v1/sessions/{id}/refunds`. */
export function idIn(path: string, pattern: RegExp): string | undefined {
  return pattern.exec(path)?.[1]
}

/** The JSON of a request; an empty object if invalid. */
export function jsonOf<T>(body: string): Partial<T> {
  try {
    return JSON.parse(body || '{}') as Partial<T>
  } catch {
    return {}
  }
}

export const JSON_TYPE = { 'content-type': 'application/json' }
