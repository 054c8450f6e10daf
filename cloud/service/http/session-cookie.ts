import { hash } from 'node:crypto'
import type { Context } from 'hono'
import { getCookie, setCookie } from 'hono/cookie'
import type { UserCaller } from '../../platform/foundation/caller.ts'
import type { CloudConfig } from '../../platform/foundation/config.ts'
import type { Services } from '../../platform/operations/operation.ts'
import type { Database } from '../../platform/persistence/database.ts'
import { findUserCaller } from '../../platform/users/sessions.ts'

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

/** The user who has signed in with this browser. */
export async function userOfCookie(
  c: Context,
  database: Database,
  { config, platform }: Pick<Services, 'config' | 'platform'>,
): Promise<UserCaller | undefined> {
  const token = sessionTokenOf(c, config)
  return token === undefined ? undefined : findUserCaller(database, token, platform.clock.wall())
}
