import type { Database } from '../persistence/database.ts'
import { errorBody } from './validation.ts'
import { Failure } from '../foundation/failure.ts'
import { findStoredResponse, storeResponse, type StoredResponse, type RequestIdentity } from './idempotency.ts'
import type { OperationResult, OperationRequest } from './call-context.ts'
import type { Services } from './operation.ts'
import { responseSealer } from './response-sealer.ts'

/**
 * Stores a 409 `failed-precondition` as the response, so that a repeated request with the same key gets the same error.
 * Rethrows other errors.
 */
export async function storeErrorResponse(
  error: unknown,
  identity: RequestIdentity | undefined,
  request: OperationRequest,
  database: Database,
  services: Services,
): Promise<OperationResult> {
  if (!(error instanceof Failure) || error.code !== 'failed-precondition' || !identity) throw error
  const plain: StoredResponse = { status: 409, body: JSON.stringify(errorBody(error, request.requestId)) }
  const stored = responseSealer(request, services)
  return database.write(async (db) => {
    const nowMs = services.platform.clock.wall()
    const found = await findStoredResponse(db, identity, nowMs)
    const earlier = found && stored.open(found)
    if (earlier) return { replayed: true, ...earlier }
    await storeResponse(db, identity, stored.seal(plain), nowMs)
    return { replayed: false, ...plain }
  })
}
