import type { Db } from '../persistence/database.ts'
import type { UserPasskeyRow } from '../persistence/tables/users.ts'

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

/** The WebAuthn user handle: the id of the user, base64url. */
export const userHandleOf = (userId: string) => Buffer.from(userId).toString('base64url')
