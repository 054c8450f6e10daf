import { findKeyCaller, findKeyCallerById, isKeyShaped } from '../../platform/accounts/api-keys.ts'
import { agentCaller, findAgent, findAgentCaller, isAgentToken } from '../../protection/agent-identity/sessions.ts'
import { Failure } from '../../platform/foundation/failure.ts'
import type { Database, Db } from '../../platform/persistence/database.ts'
import { findSessionCaller, findUserCaller } from '../../platform/users/sessions.ts'
import { isUserToken } from '../../platform/users/user-queries.ts'
import { userInMode } from './perform-as.ts'
import type { AuthenticatedCaller } from './pick-caller.ts'
import { hash } from 'node:crypto'
import type { Context } from 'hono'
import { getCookie, setCookie } from 'hono/cookie'
import type { CloudConfig } from '../../platform/foundation/config.ts'

/** Cookie of the session. Browsers accept the prefix `__Host-` only over HTTPS, from this host, for all paths. */
const SECURE_NAME = '__Host-untag_session'
/** Cookie over plain HTTP, for loopback addresses. */
const PLAIN_NAME = 'untag_session'

const isSecure = ({ baseUrl }: Pick<CloudConfig, 'baseUrl'>) => baseUrl.startsWith('https:')

/** The session token in the cookie of a request. */
export function sessionTokenOf(c: Context, config: Pick<CloudConfig, 'baseUrl'>): string | undefined {
  return getCookie(c, isSecure(config) ? SECURE_NAME : PLAIN_NAME)
}

/** Sets the session cookie; an empty token deletes it. The cookie ends with the browser; the cloud ends the session. */
export function setSessionCookie(c: Context, config: Pick<CloudConfig, 'baseUrl'>, token: string): void {
  setCookie(c, isSecure(config) ? SECURE_NAME : PLAIN_NAME, token, {
    path: '/',
    httpOnly: true,
    sameSite: 'Lax',
    secure: isSecure(config),
    ...(token === '' && { maxAge: 0 }),
  })
}

/** Secret that the forms of a session contain. Only the cloud and the browser of the session can compute it. */
export function formSecretOf(sessionToken: string): string {
  return hash('sha256', `form\0${sessionToken}`, 'base64url')
}

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
