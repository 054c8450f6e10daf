import { userCaller } from '../foundation/caller.ts'
import { Failure } from '../foundation/failure.ts'
import type { Call } from '../operations/operation.ts'
import type { Db } from '../persistence/database.ts'
import type { UserRow } from '../persistence/tables/users.ts'
import { listPasskeys } from './passkeys.ts'
import { endSessionsOf, NOTHING_BEGUN, type Begun } from './sessions.ts'
import { deletePasskeysOf, findUser, updateUserRow } from './user-queries.ts'

/**
 * Changes of credentials in two steps. What the first step makes is stored in the row of the session. So it ends with
 * the session, and no other session can finish the change.
 */

/** Validity of the secret of an authenticator app until a code confirms it, ms. */
export const NEW_APP_MS = 10 * 60_000

/** The calling user. Throws 401 if the user was removed. */
export async function ownUser(call: Call): Promise<UserRow> {
  const user = await findUser(call.db, userCaller(call.caller).keyId)
  if (!user) throw new Failure('unauthenticated', 'this user was removed')
  return user
}

/** Throws 403 if the user has a second factor and the session was not confirmed with one. */
export async function assertMayChangeFactors(call: Call, user: UserRow): Promise<void> {
  if (userCaller(call.caller).hasSecondFactor) return
  if (user.totp_secret === null && (await listPasskeys(call.db, user.user_id)).length === 0) return
  throw new Failure('permission-denied', 'you have a second factor: sign in with it, then try again', {
    reason: 'second_factor_needed',
  })
}

/** Stores in the session of the call what a first step made. */
export async function storeBegun(call: Call, begun: Partial<Begun>): Promise<void> {
  const { sessionId } = userCaller(call.caller)
  await call.db.updateTable('user_session').set(begun).where('session_id', '=', sessionId).execute()
}

/** What the session of the call has begun, without what has expired. */
export async function findBegun(call: Call): Promise<{ totpNext: string | null; challenge: string | null }> {
  const row = await call.db
    .selectFrom('user_session')
    .select(['totp_next', 'totp_next_expires_ms', 'passkey_challenge', 'passkey_challenge_expires_ms'])
    .where('session_id', '=', userCaller(call.caller).sessionId)
    .executeTakeFirst()
  const isOpen = (expiresMs: number | null | undefined) => (expiresMs ?? 0) > call.nowMs
  return {
    totpNext: row && isOpen(row.totp_next_expires_ms) ? row.totp_next : null,
    challenge: row && isOpen(row.passkey_challenge_expires_ms) ? row.passkey_challenge : null,
  }
}

/**
 * Ends password, passkeys and sessions of a user at the first sign-in with OpenID Connect, which proves the address.
 * Until then the inviter could have accepted the invitation in the place of the person. An authenticator app stays.
 */
export async function endUnprovenAccess(db: Db, userId: string): Promise<void> {
  await updateUserRow(db, userId, { password_hash: null })
  await deletePasskeysOf(db, userId)
  await endOtherCredentialSteps(db, userId)
}

/**
 * Call this at each change of a password or second factor. It ends the other sessions of the user, every change of
 * credentials that has begun, and an open link to reset the password. Returns the number of ended sessions.
 */
export async function endOtherCredentialSteps(db: Db, userId: string, keptSession?: string): Promise<number> {
  await updateUserRow(db, userId, { invitation_hash: null, invitation_expires_ms: null })
  if (keptSession !== undefined)
    await db.updateTable('user_session').set(NOTHING_BEGUN).where('session_id', '=', keptSession).execute()
  return endSessionsOf(db, userId, keptSession)
}
