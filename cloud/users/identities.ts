import type { Identity } from '../foundation/ports.ts'
import type { Db } from '../persistence/database.ts'
import type { UserRow } from '../persistence/tables/users.ts'
import { findUserToSignIn } from './user-queries.ts'

type IdentityKey = Pick<Identity, 'issuer' | 'subject'>

/** The user whom an earlier sign-in linked to this identity. */
export function findUserOfIdentity(db: Db, { issuer, subject }: IdentityKey): Promise<UserRow | undefined> {
  return db
    .selectFrom('user_identity')
    .innerJoin('console_user', 'console_user.user_id', 'user_identity.user_id')
    .innerJoin('account', 'account.account_id', 'console_user.account_id')
    .selectAll('console_user')
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .where('account.status', '=', 'active')
    .executeTakeFirst()
}

/**
 * The user with this address, as for a sign-in by password. Without one, the person with the oldest open invitation.
 */
export async function findUserToLink(db: Db, email: string, nowMs: number): Promise<UserRow | undefined> {
  const user = await findUserToSignIn(db, email, undefined)
  if (user) return user
  return db
    .selectFrom('console_user')
    .innerJoin('account', 'account.account_id', 'console_user.account_id')
    .selectAll('console_user')
    .where('console_user.email', '=', email)
    .where('invitation_expires_ms', '>', nowMs)
    .where('account.status', '=', 'active')
    .orderBy('user_id')
    .executeTakeFirst()
}

/** Links an identity to a user. */
export async function linkIdentity(
  db: Db,
  { issuer, subject }: IdentityKey,
  userId: string,
  nowMs: number,
): Promise<void> {
  await db.insertInto('user_identity').values({ issuer, subject, user_id: userId, created_ms: nowMs }).execute()
}
