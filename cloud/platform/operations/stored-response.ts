import { sealerFromText } from '../authority/sealing.ts'
import { type StoredResponse, findStoredResponse, storeResponse, type RequestIdentity } from './idempotency.ts'
import type { OperationRequest, OperationResult } from './call-context.ts'
import type { Services } from './operation.ts'
import type { Database } from '../persistence/database.ts'
import { errorBody } from './validation.ts'
import { Failure } from '../foundation/failure.ts'

/** Encrypts the stored response of one request, and decrypts it. */
export interface ResponseSealer {
  seal(answer: StoredResponse): StoredResponse
  open(stored: StoredResponse): StoredResponse
}

const PLAIN: ResponseSealer = { seal: (answer) => answer, open: (stored) => stored }
const CONTEXT = 'idempotency'

/**
 * Seals a response that contains a secret. The encryption key comes from the Idempotency-Key, so only a caller that
 * sends the Idempotency-Key again can read the response.
 */
export function responseSealer(
  { operation, idempotencyKey }: Pick<OperationRequest, 'operation' | 'idempotencyKey'>,
  { platform }: Pick<Services, 'platform'>,
): ResponseSealer {
  if (!operation.secretResponse || idempotencyKey === undefined) return PLAIN
  const sealer = sealerFromText(idempotencyKey, platform.random)
  return {
    seal: ({ status, body }) => ({ status, body: sealer.seal(Buffer.from(body), CONTEXT) }),
    open: ({ status, body }) => ({ status, body: sealer.open(body, CONTEXT).toString() }),
  }
}

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
