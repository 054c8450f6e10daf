import type { z } from 'zod'

/**
 * What a payment service provider must be able to do. One file a provider in providers/; money is whole cents.
 * The ids of our payments and refunds are the idempotency keys towards the other side: asking twice moves nothing twice.
 */

export interface SessionRequest {
  /** Our payment: what the provider's notifications name as reference, and the idempotency key. */
  readonly paymentId: string
  readonly amountCent: number
  readonly currency: string
  /** Where the shopper's browser goes afterwards, paid or not. */
  readonly returnUrl: string
  /** Where notifications go, for providers that are told with each session. */
  readonly notifyUrl: string
  /** What the shopper reads at the provider: the name of the store. */
  readonly title: string
  /** When we give the payment up, ms since 1970; the same at every try. */
  readonly untilMs: number
}

export interface Session {
  readonly sessionId: string
  /** The provider's page. */
  readonly url: string
}

/** What a provider says became of a session. */
export interface PaymentNotice {
  /** null where only our own id is vouched for. */
  readonly sessionId: string | null
  /** Our payment, where the provider names it. */
  readonly paymentId: string | null
  readonly state: 'paid' | 'ended'
  /** Of a paid one. */
  readonly amountCent: number | null
  readonly currency: string | null
  /** The provider's id of what was paid. */
  readonly chargeId: string | null
}

/** What a provider says became of a refund that it had taken. */
export interface RefundNotice {
  /** The provider's id of it. */
  readonly refundRef: string
  /** Our refund, where the provider names it. */
  readonly refundId: string | null
  readonly state: 'done' | 'failed'
}

export type Notice = PaymentNotice | RefundNotice

export interface RefundRequest {
  /** Our refund: the idempotency key. */
  readonly refundId: string
  readonly sessionId: string
  readonly chargeId: string | null
  readonly amountCent: number
  readonly currency: string
  /** It was sent before, and nobody knows what became of it. */
  readonly isRepeated: boolean
  /** What else went back of this payment, cents each: for providers that know no idempotency keys. */
  readonly doneCents: readonly number[]
}

/** A notification as it arrived, before anything of it is believed. */
export interface Notification {
  header(name: string): string | undefined
  readonly body: string
  readonly nowMs: number
  /** Whether a session with this id was opened with these settings, or one whose id never reached us for this payment. */
  isOurs(sessionId: string, paymentId?: string | null): Promise<boolean>
  /** Whether a refund by this id of the provider's, or by our own, was sent with these settings. */
  isOurRefund(refundRef: string, refundId: string | null): Promise<boolean>
}

export interface ProviderConnection {
  /** Throws a `ProviderFault`. */
  createSession(wish: SessionRequest): Promise<Session>
  /** What became of a session; undefined while it is open, or when the provider cannot be asked that. Throws a `ProviderFault`. */
  findSession(sessionId: string): Promise<PaymentNotice | undefined>
  /** Answers the provider's id once it has taken the refund. Throws a `ProviderFault`. */
  refund(wish: RefundRequest): Promise<string>
  /**
   * What a genuine notification says of payments and refunds, undefined when it is not genuine; nothing, when it is about none of ours.
   * Throws a `ProviderFault` where the provider must be asked and does not answer.
   */
  readNotification(notification: Notification): Promise<readonly Notice[] | undefined>
}

/** A request to a provider, relative to its own address. */
export interface ProviderRequest {
  readonly url: string
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

export interface ProviderAnswer {
  readonly status: number
  /** Names in small letters. */
  readonly headers: Readonly<Record<string, string>>
  /** The JSON of the answer; undefined when it is none. */
  readonly json: unknown
}

/** Sends within the time that a provider has. Throws a `ProviderFault` when there is no answer. */
export type SendToProvider = (request: ProviderRequest) => Promise<ProviderAnswer>

export interface PaymentProvider {
  readonly name: string
  readonly config: z.ZodType
  /** The address that these settings lead to, for the guard of addresses. */
  addressOf(config: unknown): string
  connect(config: unknown, send: SendToProvider, nowMs: () => number): ProviderConnection
  /** What it wants to read when it has been heard; by default some JSON. */
  readonly acknowledgement?: string
  /** It knows no idempotency keys for refunds: of one payment it is asked for one at a time. */
  readonly refundsOneByOne?: boolean
}

/** The provider did not do it. */
export class ProviderFault extends Error {
  override name = 'ProviderFault'
  /** It has refused for good and done nothing. Else nobody knows, and the same request may be sent again. */
  readonly isFinal: boolean
  constructor(message: string, isFinal: boolean) {
    super(message)
    this.isFinal = isFinal
  }
}

/** Declares a provider whose settings have a type of their own. */
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

/** Statuses after which the same request may succeed, or may have: time-outs, conflicts of one key, too many requests. */
const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([408, 409, 425, 429])

/** The answer, read as this. Throws a `ProviderFault`: final when the provider has refused in so many words. */
export function readAnswer<S extends z.ZodType>({ status, json }: ProviderAnswer, schema: S): z.output<S> {
  if (status >= 400 && status < 500 && !RETRYABLE_STATUSES.has(status))
    throw new ProviderFault(`the provider answered ${status}`, true)
  if (status < 200 || status > 299) throw new ProviderFault(`the provider answered ${status}`, false)
  const read = schema.safeParse(json)
  if (!read.success) throw new ProviderFault('the provider answered something else than it should', false)
  return read.data
}
