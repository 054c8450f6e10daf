import type { z } from 'zod'

/**
 * Interface of a payment service provider; providers/ has one file for each. Amounts are whole cents. Payment and
 * refund ids are idempotency keys, so that repeated requests move money once.
 */

export interface SessionRequest {
  /** Idempotency key, and reference in the provider's notifications. */
  readonly paymentId: string
  readonly amountCent: number
  readonly currency: string
  /** Page to which the provider redirects the shopper's browser after success or failure. */
  readonly returnUrl: string
  /** Address for notifications, for providers that need it per session. */
  readonly notifyUrl: string
  /** Name of the store, shown to the shopper. */
  readonly title: string
  /** Time limit of the payment, ms since 1970; the same at each attempt. */
  readonly untilMs: number
}

export interface Session {
  readonly sessionId: string
  /** Page of the provider. */
  readonly url: string
}

/** State of a session at the provider. */
export interface PaymentNotice {
  /** null if the provider's signature does not cover the session id. */
  readonly sessionId: string | null
  /** Payment id, if the provider sends it. */
  readonly paymentId: string | null
  readonly state: 'paid' | 'ended'
  /** Set if the session is paid. */
  readonly amountCent: number | null
  readonly currency: string | null
  /** The provider's id of the charge. */
  readonly chargeId: string | null
}

/** State of a refund at the provider. */
export interface RefundNotice {
  /** The provider's refund id. */
  readonly refundRef: string
  /** Refund id, if the provider sends it. */
  readonly refundId: string | null
  readonly state: 'done' | 'failed'
}

export type Notice = PaymentNotice | RefundNotice

export interface RefundRequest {
  /** Idempotency key. */
  readonly refundId: string
  readonly sessionId: string
  readonly chargeId: string | null
  readonly amountCent: number
  readonly currency: string
  /** True if an earlier attempt had an unknown result. */
  readonly isRepeated: boolean
  /** Amounts of the other completed refunds of this payment, cents, for providers without idempotency keys. */
  readonly doneCents: readonly number[]
}

/** A notification that is not authenticated yet. */
export interface Notification {
  header(name: string): string | undefined
  readonly body: string
  readonly nowMs: number
  /** True if this configuration opened the session, or if the session id of this payment never arrived. */
  isOurs(sessionId: string, paymentId?: string | null): Promise<boolean>
  /** True if this configuration sent the refund. */
  isOurRefund(refundRef: string, refundId: string | null): Promise<boolean>
}

export interface ProviderConnection {
  /** Throws a `ProviderFault`. */
  createSession(wish: SessionRequest): Promise<Session>
  /**
   * State of a session; undefined while the session is open, or if the provider offers no query. Throws a
   * `ProviderFault`.
   */
  findSession(sessionId: string): Promise<PaymentNotice | undefined>
  /** Returns the provider's refund id after the provider accepted the refund. Throws a `ProviderFault`. */
  refund(wish: RefundRequest): Promise<string>
  /**
   * Authenticates a notification. Returns undefined if the notification is not genuine. Returns an empty list if the
   * notification concerns no payment of this configuration. Throws a `ProviderFault` if the provider must be queried
   * and does not respond.
   */
  readNotification(notification: Notification): Promise<readonly Notice[] | undefined>
}

/** A request to a provider. */
export interface ProviderRequest {
  readonly url: string
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

export interface ProviderAnswer {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Parsed JSON body; undefined if the body is not JSON. */
  readonly json: unknown
}

/**
 * Sends a request and waits at most `ANSWER_WITHIN_MS` for the response. Throws a `ProviderFault` if there is no
 * response.
 */
export type SendToProvider = (request: ProviderRequest) => Promise<ProviderAnswer>

export interface PaymentProvider {
  readonly name: string
  readonly config: z.ZodType
  /** Address of the provider with these settings, for the address guard. */
  addressOf(config: unknown): string
  connect(config: unknown, send: SendToProvider, nowMs: () => number): ProviderConnection
  /** Body of the response to a notification; default: some JSON. */
  readonly acknowledgement?: string
  /**
   * True if the provider has no idempotency keys for refunds. If so, the cloud sends the refunds of a payment one at a
   * time.
   */
  readonly refundsOneByOne?: boolean
}

/** The provider did not carry out a request, or the result of the request is unknown. */
export class ProviderFault extends Error {
  override name = 'ProviderFault'
  /**
   * True if the provider rejected the request and did nothing. Otherwise the result is unknown, and the request may be
   * repeated.
   */
  readonly isFinal: boolean
  constructor(message: string, isFinal: boolean) {
    super(message)
    this.isFinal = isFinal
  }
}

/** Declares a provider with typed settings. */
export function paymentProvider<C extends z.ZodType>(provider: {
  name: string
  config: C
  addressOf(config: z.output<C>): string
  connect(config: z.output<C>, send: SendToProvider, nowMs: () => number): ProviderConnection
  acknowledgement?: string
  refundsOneByOne?: boolean
}): PaymentProvider {
  return provider as unknown as PaymentProvider
}

/** Statuses after which the same request may succeed: time-outs, idempotency conflicts, too many requests. */
const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([408, 409, 425, 429])

/** Parses a response. Throws a `ProviderFault`, final if the provider rejected the request. */
export function readAnswer<S extends z.ZodType>({ status, json }: ProviderAnswer, schema: S): z.output<S> {
  if (status >= 400 && status < 500 && !RETRYABLE_STATUSES.has(status))
    throw new ProviderFault(`the provider responded with status ${status}`, true)
  if (status < 200 || status > 299) throw new ProviderFault(`the provider responded with status ${status}`, false)
  const read = schema.safeParse(json)
  if (!read.success) throw new ProviderFault('the provider sent a response in an unexpected format', false)
  return read.data
}
