import { findKeyCaller, isKeyShaped } from '../accounts/api-keys.ts'
import { findAgentCaller, isAgentToken } from '../agent-identity/sessions.ts'
import { Failure } from '../foundation/failure.ts'
import type { Database } from '../persistence/database.ts'
import { findUserCaller } from '../users/sessions.ts'
import { isUserToken } from '../users/user-tokens.ts'
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
