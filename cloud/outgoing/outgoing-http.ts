import type { TargetRules } from './address-guard.ts'

/** One request to a merchant's own system. The network is behind this port: made in bin/outgoing-http.ts. */
export interface OutgoingRequest {
  readonly url: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** A body that is not text, instead of `body`. */
  readonly bytes?: Uint8Array
  /** Of the answer, bytes: what is longer is cut off there. */
  readonly answerLimit: number
  readonly rules: TargetRules
}

export interface OutgoingAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** The answer was longer than the limit, or went on when the time was up. */
  readonly isCut: boolean
}

/** Why there is no answer at all; the words are listed in docs/reference/errors.md. */
export const OUTGOING_FAULTS = [
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

/** There is no answer, and why. */
export class OutgoingFault extends Error {
  override name = 'OutgoingFault'
  readonly code: OutgoingFaultCode
  constructor(code: OutgoingFaultCode, message: string) {
    super(message)
    this.code = code
  }
}

/**
 * Sends requests to addresses that others have chosen. Follows no redirects, connects only to what the rules allow and to the
 * very address that was checked, shares no connections.
 */
export interface OutgoingHttp {
  /** Resolves once the answer's head is there and its body has ended or was cut off; rejects with an `OutgoingFault`. */
  send(request: OutgoingRequest, signal: AbortSignal): Promise<OutgoingAnswer>
}
