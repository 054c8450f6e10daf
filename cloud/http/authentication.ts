import { findKeyCaller, isKeyShaped } from '../accounts/api-keys.ts'
import { findAgentCaller, isAgentToken } from '../agent-identity/sessions.ts'
import type { AgentCaller, KeyCaller } from '../foundation/caller.ts'
import { Failure } from '../foundation/failure.ts'
import type { Db } from '../persistence/database.ts'

/**
 * Authenticates the caller by the Authorization header. Returns undefined if the request has no such header. Throws 401
 * if the header is invalid.
 */
export async function authenticate(
  db: Db,
  header: string | undefined,
  nowMs: number,
): Promise<KeyCaller | AgentCaller | undefined> {
  if (header === undefined) return undefined
  const token = /^Bearer +(\S+)$/i.exec(header)?.[1]
  if (token === undefined) throw new Failure('unauthenticated', 'the Authorization header must be: Bearer <key>')
  const caller = isAgentToken(token)
    ? await findAgentCaller(db, token, nowMs)
    : isKeyShaped(token)
      ? await findKeyCaller(db, token, nowMs)
      : undefined
  if (!caller) throw new Failure('unauthenticated', 'this API key is unknown, expired or revoked')
  return caller
}
