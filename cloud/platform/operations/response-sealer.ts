import { sealerFromText } from '../authority/sealing.ts'
import type { StoredResponse } from './idempotency.ts'
import type { OperationRequest } from './call-context.ts'
import type { Services } from './operation.ts'

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
