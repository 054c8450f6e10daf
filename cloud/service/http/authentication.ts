import { findKeyCaller, findKeyCallerById, isKeyShaped } from '../../platform/accounts/api-keys.ts'
import { agentCaller, findAgent, findAgentCaller, isAgentToken } from '../../protection/agent-identity/sessions.ts'
import { Failure } from '../../platform/foundation/failure.ts'
import type { Database, Db } from '../../platform/persistence/database.ts'
import { findSessionCaller, findUserCaller } from '../../platform/users/sessions.ts'
import { isUserToken } from '../../platform/users/user-queries.ts'
import { userInMode } from './perform-as.ts'
import type { AuthenticatedCaller } from './pick-caller.ts'

/**
 * Authenticates the caller by the Authorization header. Returns undefined if the request has no such header. Throws 401
 * if the header is invalid.
 */
export async function authenticate(
  database: Database,
  header: string | undefined,
  nowMs: number,
): Promise<AuthenticatedCaller | undefined> {
  if (header === undefined) return undefined
  const token = /^Bearer +(\S+)$/i.exec(header)?.[1]
  if (token === undefined) throw new Failure('unauthenticated', 'the Authorization header must be: Bearer <key>')
  if (isUserToken('session', token)) {
    const user = await findUserCaller(database, token, nowMs)
    if (!user) throw new Failure('unauthenticated', 'this session has ended: sign in again')
    return user
  }
  const caller = isAgentToken(token)
    ? await findAgentCaller(database.reads, token, nowMs)
    : isKeyShaped(token)
      ? await findKeyCaller(database.reads, token, nowMs)
      : undefined
  if (!caller) throw new Failure('unauthenticated', 'this API key is unknown, expired or revoked')
  return caller
}

/** `Services.findCaller`. A user keeps the mode of the request; throws 403 if the session may no longer use it. */
export async function findCaller(
  db: Db,
  caller: AuthenticatedCaller,
  nowMs: number,
): Promise<AuthenticatedCaller | undefined> {
  if (caller.kind === 'user') {
    const user = await findSessionCaller(db, caller.sessionId, nowMs)
    return user && userInMode(user, caller.mode)
  }
  if (caller.kind !== 'agent') return findKeyCallerById(db, caller.keyId, nowMs)
  const agent = await findAgent(db, caller.agentId)
  return agent?.revoked_ms === null ? agentCaller(agent) : undefined
}
