import { Failure, invalid } from '../../platform/foundation/failure.ts'

/** Reason of a failed request to a merchant's system; docs/reference/errors.md explains the codes. */
export type VendorFaultCode =
  | 'credentials_refused'
  | 'system_refused'
  | 'system_unavailable'
  | 'rate_limited'
  | 'answer_not_understood'
  | 'url_refused'

/** A failed request to a merchant's system. The message contains no text of the system and no credentials. */
export class VendorFault extends Error {
  override name = 'VendorFault'
  readonly code: VendorFaultCode
  /** HTTP status, if there was a response. */
  readonly status: number | undefined
  /** Response body, for connectors that can find the faulty records in it. */
  readonly json: unknown
  /** Seconds until the request may be repeated. */
  readonly retryAfter: number | undefined
  constructor(
    code: VendorFaultCode,
    message: string,
    more: { status?: number; json?: unknown; retryAfter?: number } = {},
  ) {
    super(message)
    this.code = code
    this.status = more.status
    this.json = more.json
    this.retryAfter = more.retryAfter
  }
}

const RETRY_AFTER_S = 30

/** Converts a fault to the API error: 400 if other credentials may help, 503 if a later attempt may help. */
export function failureOf(fault: VendorFault): Failure {
  const { code, message } = fault
  if (code === 'credentials_refused' || code === 'system_refused' || code === 'url_refused')
    return invalid('credentials', message, code)
  const reason =
    code === 'answer_not_understood'
      ? ({ reason: 'answer_not_understood' } as const)
      : ({ reason: 'system_unavailable' } as const)
  return new Failure('unavailable', message, {
    ...reason,
    retryAfter: fault.retryAfter ?? RETRY_AFTER_S,
    details: [{ path: 'system', code, message }],
  })
}
