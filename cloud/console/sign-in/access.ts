import type { Context } from 'hono'
import { newId } from '../../../policy/ids.ts'
import { performerForPages, userInMode } from '../../service/http/perform-as.ts'
import type { OperationLimits } from '../../service/http/operation-limits.ts'
import { formSecretOf, sessionTokenOf, setSessionCookie } from '../../service/http/session-cookie.ts'
import type { Services } from '../../platform/operations/operation.ts'
import type { Database } from '../../platform/persistence/database.ts'
import { endSessions, signOut } from '../../platform/users/session-operations.ts'
import { findUserCaller } from '../../platform/users/sessions.ts'
import { findUser } from '../../platform/users/user-queries.ts'
import type { ConsoleAccess, ConsoleSession } from '../frame/access.ts'

/** Gives the console its sessions. `signInPage` answers while the browser is signed out. */
export function consoleAccess(
  database: Database,
  services: Services,
  limits: OperationLimits,
  signInPage: ConsoleAccess['signInPage'],
): ConsoleAccess {
  const { config, platform } = services
  const performAs = performerForPages(database, services, limits)

  const callerOf = async (c: Context) => {
    const token = sessionTokenOf(c, config)
    const caller = token === undefined ? undefined : await findUserCaller(database, token, platform.clock.wall())
    return token !== undefined && caller ? { token, caller } : undefined
  }

  return {
    async sessionOf(c) {
      const found = await callerOf(c)
      const row = found && (await findUser(database.reads, found.caller.keyId))
      if (!found || !row) return undefined
      const { caller, token } = found
      const { accountId, role, storeIds, mode, mayUseLive } = caller
      const user = { userId: row.user_id, name: row.name || row.email, email: row.email, accountId, role, storeIds }
      return { user, caller, mode, mayUseLive, csrfToken: formSecretOf(token) }
    },
    performAs: (session, { mode, ...call }) => performAs(userInMode(session.caller, mode), call),
    signInPage,
    async signOut(c: Context, { caller }: ConsoleSession, everywhere: boolean) {
      const operation = everywhere ? endSessions : signOut
      await performAs(caller, {
        operation,
        input: {},
        idempotencyKey: undefined,
        requestId: newId('req', platform),
      })
      setSessionCookie(c, config, '')
    },
  }
}
