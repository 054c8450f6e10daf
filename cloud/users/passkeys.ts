import { userCaller } from '../foundation/caller.ts'
import { Failure } from '../foundation/failure.ts'
import type { Call } from '../operations/operation.ts'
import type { Db } from '../persistence/database.ts'
import type { UserPasskeyRow, UserRow } from '../persistence/tables/users.ts'

/** Maximum number of passkeys of one user. */
export const PASSKEYS_LIMIT = 10

/** The passkeys of a user, oldest first. */
export function listPasskeys(db: Db, userId: string): Promise<UserPasskeyRow[]> {
  return db.selectFrom('user_passkey').selectAll().where('user_id', '=', userId).orderBy('passkey_id').execute()
}

/** The passkey with the id that its authenticator gave it. */
export function findPasskey(db: Db, credentialId: string): Promise<UserPasskeyRow | undefined> {
  return db.selectFrom('user_passkey').selectAll().where('credential_id', '=', credentialId).executeTakeFirst()
}

/** The passkey of a user who may sign in. */
export function findPasskeyToSignIn(db: Db, credentialId: string): Promise<UserPasskeyRow | undefined> {
  return db
    .selectFrom('user_passkey')
    .innerJoin('console_user', 'console_user.user_id', 'user_passkey.user_id')
    .innerJoin('account', 'account.account_id', 'console_user.account_id')
    .selectAll('user_passkey')
    .where('credential_id', '=', credentialId)
    .where('accepted_ms', 'is not', null)
    .where('account.status', '=', 'active')
    .executeTakeFirst()
}

/** Throws 403 if the user has a second factor and the session was not confirmed with one. */
export async function assertMayChangeFactors(call: Call, user: UserRow): Promise<void> {
  if (userCaller(call.caller).hasSecondFactor) return
  if (user.totp_secret === null && (await listPasskeys(call.db, user.user_id)).length === 0) return
  throw new Failure('permission-denied', 'you have a second factor: sign in with it, then try again', {
    reason: 'second_factor_needed',
  })
}

/** The WebAuthn user handle: the id of the user, base64url. */
export const userHandleOf = (userId: string) => Buffer.from(userId).toString('base64url')
