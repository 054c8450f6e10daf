import type { Database } from '../persistence/database.ts'
import { errorBody } from './error-body.ts'
import { Failure } from './failure.ts'
import { findAnswer, keepAnswer, openAnswer, sealAnswer, type KeptAnswer, type RequestIdentity } from './idempotency.ts'
import type { Performed, Request } from './open-call.ts'
import type { Services } from './operation.ts'

/** A refused state move is an answer too: the same key must not succeed later. Every other error is thrown on. */
export async function keepRefusal(
  error: unknown,
  identity: RequestIdentity | undefined,
  request: Request,
  database: Database,
  services: Services,
): Promise<Performed> {
  if (
    !(error instanceof Failure) ||
    error.code !== 'failed-precondition' ||
    !identity ||
    request.idempotencyKey === undefined
  )
    throw error
  const plain: KeptAnswer = { status: 409, body: JSON.stringify(errorBody(error, request.requestId)) }
  const { idempotencyKey, operation } = request
  const { random } = services.platform
  // What is kept of an operation with secrets is sealed, whatever the answer was: it is opened as one when it is asked for again.
  const answer = operation.secretAnswer ? sealAnswer(plain, idempotencyKey, random) : plain
  return database.write(async (db) => {
    const nowMs = services.platform.clock.wall()
    const kept = await findAnswer(db, identity, nowMs)
    if (kept) return { replayed: true, ...(operation.secretAnswer ? openAnswer(kept, idempotencyKey, random) : kept) }
    await keepAnswer(db, identity, answer, { basis: [] }, nowMs)
    return { replayed: false, ...plain }
  })
}
