import { sealerFromText } from '../authority/sealing.ts'
import type { KeptAnswer } from './idempotency.ts'
import type { Request } from './open-call.ts'
import type { Services } from './operation.ts'

/** How the answers of one request are written to the database and read again. */
export interface StoredAnswers {
  seal(answer: KeptAnswer): KeptAnswer
  open(stored: KeptAnswer): KeptAnswer
}

const PLAIN: StoredAnswers = { seal: (answer) => answer, open: (stored) => stored }
const CONTEXT = 'idempotency'

/** An answer that has a secret is stored sealed under its Idempotency-Key, so that only a caller who sends the key again can read it. */
export function storedAnswers(
  { operation, idempotencyKey }: Pick<Request, 'operation' | 'idempotencyKey'>,
  { platform }: Pick<Services, 'platform'>,
): StoredAnswers {
  if (!operation.secretAnswer || idempotencyKey === undefined) return PLAIN
  const sealer = sealerFromText(idempotencyKey, platform.random)
  return {
    seal: ({ status, body }) => ({ status, body: sealer.seal(Buffer.from(body), CONTEXT) }),
    open: ({ status, body }) => ({ status, body: sealer.open(body, CONTEXT).toString() }),
  }
}
