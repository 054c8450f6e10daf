import type { TargetRules } from './address-guard.ts'

/** One request to a merchant's system. host/outgoing-http.ts implements the network. */
export interface OutgoingRequest {
  readonly url: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** Binary body, instead of `body`. */
  readonly bytes?: Uint8Array
  /** Maximum number of bytes of the response. Longer responses are cut. */
  readonly answerLimit: number
  readonly rules: TargetRules
}

export interface OutgoingAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** True if the response exceeded the size or time limit. */
  readonly isCut: boolean
}

/** Causes of a request without a response; docs/reference/errors.md explains them. */
const OUTGOING_FAULTS = [
  'address_refused',
  'name_not_found',
  'connection_refused',
  'connection_reset',
  'tls_failed',
  'timeout',
  'not_http',
  'connection_failed',
] as const
export type OutgoingFaultCode = (typeof OUTGOING_FAULTS)[number]

/** The request got no response; `code` is the cause. */
export class OutgoingFault extends Error {
  override name = 'OutgoingFault'
  readonly code: OutgoingFaultCode
  constructor(code: OutgoingFaultCode, message: string) {
    super(message)
    this.code = code
  }
}

/**
 * Sends requests to addresses that merchants configured. It follows no redirects, connects only to the checked address,
 * and uses each connection for one request.
 */
export interface OutgoingHttp {
  /** Resolves with the response after the body ended or was cut; rejects with an `OutgoingFault`. */
  send(request: OutgoingRequest, signal: AbortSignal): Promise<OutgoingAnswer>
}
