import { Failure } from '../../platform/foundation/failure.ts'
import { DatabaseBusy, DatabaseUnavailable, isDiskFull } from '../../platform/persistence/database.ts'

/**
 * Converts an error for the caller: temporary faults become 503 with `Retry-After`, and unexpected faults become 500
 * without details.
 */
export function asFailure(error: unknown): Failure {
  if (error instanceof Failure) return error
  if (error instanceof DatabaseBusy)
    return new Failure('unavailable', 'too many requests wait; try again', { retryAfter: 1 })
  if (error instanceof DatabaseUnavailable) {
    const text = error.isOutcomeUnknown
      ? 'the connection to the database was lost while the change was stored, so it may be stored or not; send the request again with the same Idempotency-Key'
      : 'the database does not answer, and nothing was changed; send the request again'
    return new Failure('unavailable', text, { reason: 'database_unavailable', retryAfter: 2 })
  }
  const code = (error as { code?: string } | null)?.code
  if (code === '40001' || code === '40P01')
    return new Failure('unavailable', 'other requests change the same data at the moment; try again', { retryAfter: 1 })
  if (isDiskFull(error)) return new Failure('unavailable', 'the disk is full', { reason: 'disk_full', retryAfter: 30 })
  return new Failure('internal', 'an unexpected error occurred and was logged with this requestId')
}
