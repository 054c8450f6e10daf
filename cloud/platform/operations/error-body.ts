import type { ErrorDetail, Failure } from '../foundation/failure.ts'

/** The Error object of the specification, with our additions (ADR 0003). */
export interface ErrorBody {
  error: string
  code: string
  reason?: string
  requiredUpgrade?: string
  currentPackage?: string
  details?: ErrorDetail[]
  allowedNext?: readonly string[]
  retryAt?: string
  accounts?: readonly string[]
  flow?: string
  requestId: string
}

/** Converts a failure to the body of an error response. */
export function errorBody(failure: Failure, requestId: string): ErrorBody {
  const { reason, requiredUpgrade, currentPackage, details, allowedNext, retryAt, accounts, flow } = failure.extras
  return {
    error: failure.message,
    code: failure.code,
    ...(reason !== undefined && { reason }),
    ...(requiredUpgrade !== undefined && { requiredUpgrade }),
    ...(currentPackage !== undefined && { currentPackage }),
    ...(details && details.length > 0 && { details }),
    ...(allowedNext && { allowedNext }),
    ...(retryAt !== undefined && { retryAt }),
    ...(accounts && { accounts }),
    ...(flow !== undefined && { flow }),
    requestId,
  }
}
