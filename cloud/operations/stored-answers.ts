import { sealerFromText } from '../authority/sealing.ts'
import type { KeptAnswer } from './idempotency.ts'
import type { Request } from './open-call.ts'
import type { Services } from './operation.ts'

/** How the answers of one request are written to the database and read again. */
export interface StoredAnswers {
  seal(answer: KeptAnswer): KeptAnswer
  /** Undefined if nothing that this installation has opens it: the request is carried out again. */
  open(stored: KeptAnswer): KeptAnswer | undefined
}

const PLAIN: StoredAnswers = { seal: (answer) => answer, open: (stored) => stored }
const CONTEXT = 'idempotency'

/**
 * An answer that holds a secret is stored sealed. With an Idempotency-Key it is sealed under that key, so that only a caller who
 * sends the key again can have it. Without one it is sealed under the installation's key, so that a database or a backup alone
 * holds no usable token.
 */
export function storedAnswers(
  { operation, idempotencyKey }: Pick<Request, 'operation' | 'idempotencyKey'>,
  { authority, platform }: Services,
): StoredAnswers {
  if (!operation.secretAnswer) return PLAIN
  const sealer = idempotencyKey === undefined ? authority.sealer : sealerFromText(idempotencyKey, platform.random)
  return {
    seal: ({ status, body }) => ({ status, body: sealer.seal(Buffer.from(body), CONTEXT) }),
    open(stored) {
      // An earlier release stored some of these as they were.
      if (stored.body.startsWith('{')) return stored
      try {
        return { status: stored.status, body: sealer.open(stored.body, CONTEXT).toString() }
      } catch (error) {
        // An operator has removed the sealing key since (`untag keys reseal`). Without a key the operation may run again.
        if (idempotencyKey === undefined) return undefined
        throw error
      }
    },
  }
}
