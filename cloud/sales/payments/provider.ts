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
  /**
   * Set if the session is paid and the provider states the amount. null counts as the requested amount and currency:
   * the cloud then cannot detect another one.
   */
  readonly amountCent: number | null
  readonly currency: string | null
  /** The provider's id of the charge. */
  readonly chargeId: string | null
}

/** State of a refund or dispute at the provider. */
export interface RefundNotice {
  /** The provider's id of the refund or dispute. */
  readonly refundRef: string
  /** Refund id, if the provider sends it. */
  readonly refundId: string | null
  /** `open`: a dispute that has not moved money. `failed`: the money came back to the merchant. */
  readonly state: 'open' | 'done' | 'failed'
  /** The money that moved, for refunds that the cloud did not request; absent if the provider does not state it. */
  readonly movement?: Movement
}

export interface Movement {
  /** `dispute`: the bank or the provider took the money back. */
  readonly kind: 'refund' | 'dispute'
  /** Names of the payment, as far as the provider sends them. */
  readonly sessionId: string | null
  readonly paymentId: string | null
  readonly chargeId: string | null
  readonly amountCent: number | null
  readonly currency: string | null
  /** Order of notices about the same refund or dispute; null if the notice is its present state. */
  readonly rank: number | null
}

export type Notice = PaymentNotice | RefundNotice

export interface RefundRequest {
  /** Idempotency key. */
  readonly refundId: string
  readonly sessionId: string
  readonly chargeId: string | null
  readonly amountCent: number
  readonly currency: string
  /** True if an earlier attempt had an unknown result. For providers whose list lacks our refund ids. */
  readonly isRepeated: boolean
  /** Amounts of the other completed refunds of this payment, cents, for providers without idempotency keys. */
  readonly doneCents: readonly number[]
}

/** A paid session and what the cloud knows of its refunds. */
export interface PaidSession {
  readonly sessionId: string
  readonly chargeId: string | null
  readonly currency: string
  /** Amounts of the completed refunds that the cloud requested, cents. */
  readonly doneCents: readonly number[]
  /** The provider's ids of refunds that the cloud did not request and knows. */
  readonly outsideRefs: readonly string[]
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
  /** True if this configuration received the charge. */
  isOurCharge(chargeId: string): Promise<boolean>
}

export interface ProviderConnection {
  /** Throws a `ProviderFault`. */
  createSession(wish: SessionRequest): Promise<Session>
  /**
   * State of a session; undefined while the session is open, or if the provider offers no query. Throws a
   * `ProviderFault`.
   */
  findSession(sessionId: string): Promise<PaymentNotice | undefined>
  /**
   * All refunds and chargebacks of a paid session that the provider lists, also failed ones. The cloud asks before each
   * refund. A refund that an earlier attempt of the cloud made has its `refundId`, so the cloud never sends it again.
   * Throws a `ProviderFault`, also if the list is incomplete.
   */
  findRefunds?(payment: PaidSession): Promise<readonly RefundNotice[]>
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
interface ProviderRequest {
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

/**
 * What docs/guides/payments.md says of a provider. `npm run generate` writes the tables of that page. Each field is
 * Markdown of at most 25 words.
 */
interface ProviderGuide {
  /** For which events the merchant registers `notificationUrl` at the provider. Remarks on the settings. */
  readonly setUp: string
  /** What the cloud trusts after a notification: its signature, the provider's confirmation, or its own query. */
  readonly notifications: string
  /** When the purchase becomes CANCELLED after the shopper cancels on the provider's page. */
  readonly cancellation: string
  /** How the cloud or the provider recognizes a refund that is sent again. */
  readonly repeatedRefund: string
  /** What the provider reports of late failures, refunds in its dashboard and disputes. */
  readonly reports: string
  /** APIs of the provider, with their versions. */
  readonly uses: string
  /** Documentation that we used. */
  readonly documentation: string
  /** The provider's own code or data with which tests compare the connector. */
  readonly comparedWith: string
}

export interface PaymentProvider {
  readonly name: string
  readonly guide: ProviderGuide
  readonly config: z.ZodObject
  /** Address of the provider with these settings, for the address guard. */
  addressOf(config: unknown): string
  connect(config: unknown, send: SendToProvider, nowMs: () => number): ProviderConnection
  /** Body of the response to a notification; default: some JSON. */
  readonly acknowledgement?: string
  /**
   * For providers without `findRefunds`: time for which the provider certainly recognizes a repeated refund by its
   * idempotency key, ms. Default 0: the cloud never repeats a refund with an unknown result.
   */
  readonly refundKeyMs?: number
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
  guide: ProviderGuide
  config: C
  addressOf(config: z.output<C>): string
  connect(config: z.output<C>, send: SendToProvider, nowMs: () => number): ProviderConnection
  acknowledgement?: string
  refundKeyMs?: number
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
