import type { Database } from '../persistence/database.ts'
import { errorBody } from './error-body.ts'
import { Failure } from '../foundation/failure.ts'
import { findAnswer, keepAnswer, type KeptAnswer, type RequestIdentity } from './idempotency.ts'
import type { Performed, Request } from './open-call.ts'
import type { Services } from './operation.ts'
import { storedAnswers } from './stored-answers.ts'

/** A refused state move is an answer too: the same key must not succeed later. Every other error is thrown on. */
export async function keepRefusal(
  error: unknown,
  identity: RequestIdentity | undefined,
  request: Request,
  database: Database,
  services: Services,
): Promise<Performed> {
  if (!(error instanceof Failure) || error.code !== 'failed-precondition' || !identity) throw error
  const plain: KeptAnswer = { status: 409, body: JSON.stringify(errorBody(error, request.requestId)) }
  const stored = storedAnswers(request, services)
  return database.write(async (db) => {
    const nowMs = services.platform.clock.wall()
    const found = await findAnswer(db, identity, nowMs)
    const kept = found && stored.open(found)
    if (kept) return { replayed: true, ...kept }
    await keepAnswer(db, identity, stored.seal(plain), nowMs)
    return { replayed: false, ...plain }
  })
}
