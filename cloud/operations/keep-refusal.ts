import type { Database } from '../persistence/database.ts'
import { errorBody } from './error-body.ts'
import { Failure } from './failure.ts'
import { findAnswer, keepAnswer, type KeptAnswer, type RequestIdentity } from './idempotency.ts'
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
  if (!(error instanceof Failure) || error.code !== 'failed-precondition' || !identity || request.idempotencyKey === undefined) throw error
  const answer: KeptAnswer = { status: 409, body: JSON.stringify(errorBody(error, request.requestId)) }
  return database.write(async (db) => {
    const nowMs = services.platform.clock.wall()
    const kept = await findAnswer(db, identity, nowMs)
    if (kept) return { replayed: true, ...kept }
    await keepAnswer(db, identity, answer, { basis: [] }, nowMs)
    return { replayed: false, ...answer }
  })
}
