import { Failure, invalid } from '../foundation/failure.ts'

/** Why a merchant's system did not do what it was asked; the words stand in docs/reference/errors.md. */
export type VendorFaultCode =
  | 'credentials_refused'
  | 'system_refused'
  | 'system_unavailable'
  | 'rate_limited'
  | 'answer_not_understood'
  | 'url_refused'

/** A merchant's system did not do what it was asked. The message holds nothing that it said, and no credential. */
export class VendorFault extends Error {
  override name = 'VendorFault'
  readonly code: VendorFaultCode
  /** Of its answer, where there was one. */
  readonly status: number | undefined
  /** What it answered, for a connector that can tell which records it means. */
  readonly json: unknown
  /** Seconds after which it wants to be asked again. */
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

/** A fault of a merchant's system as the caller is told: 400 where other credentials would help, 503 where time may. */
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
