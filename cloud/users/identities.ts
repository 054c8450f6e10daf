import type { Identity } from '../foundation/ports.ts'
import type { Db } from '../persistence/database.ts'
import { isOpenInvitation } from './invitations.ts'
import { findUsersToSignIn, NAMESAKES_LIMIT, type AccountUser } from './user-queries.ts'

type IdentityKey = Pick<Identity, 'issuer' | 'subject'>

/** A user as whom a person at the OpenID Connect provider may sign in. */
export interface SignInOption extends AccountUser {
  /** True if the person has signed in as this user before. */
  readonly isLinked: boolean
}

/** The users whom earlier sign-ins linked to this identity. */
function findUsersOfIdentity(db: Db, { issuer, subject }: IdentityKey): Promise<AccountUser[]> {
  return db
    .selectFrom('user_identity')
    .innerJoin('console_user', 'console_user.user_id', 'user_identity.user_id')
    .innerJoin('account', 'account.account_id', 'console_user.account_id')
    .selectAll('console_user')
    .select('account.name as account_name')
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .where('account.status', '=', 'active')
    .orderBy('account.name')
    .limit(NAMESAKES_LIMIT)
    .execute()
}

/** Open invitations of this address, whose inviters may still grant the rights. */
async function findOpenInvitations(db: Db, email: string, nowMs: number): Promise<AccountUser[]> {
  const rows = await db
    .selectFrom('console_user')
    .innerJoin('account', 'account.account_id', 'console_user.account_id')
    .selectAll('console_user')
    .select('account.name as account_name')
    .where('email', '=', email)
    .where('accepted_ms', 'is', null)
    .where('invitation_expires_ms', '>', nowMs)
    .where('account.status', '=', 'active')
    .orderBy('account.name')
    .limit(NAMESAKES_LIMIT)
    .execute()
  const open: AccountUser[] = []
  for (const row of rows) if (await isOpenInvitation(db, row, nowMs)) open.push(row)
  return open
}

/** Those of these users whom the provider has signed in as another subject. */
async function usersOfOthers(db: Db, { issuer, subject }: IdentityKey, users: AccountUser[]): Promise<Set<string>> {
  if (users.length === 0) return new Set()
  const rows = await db
    .selectFrom('user_identity')
    .select('user_id')
    .where('issuer', '=', issuer)
    .where('subject', '!=', subject)
    .where(
      'user_id',
      'in',
      users.map((row) => row.user_id),
    )
    .execute()
  return new Set(rows.map((row) => row.user_id))
}

/**
 * The users as whom the person may sign in: first those of earlier sign-ins, then the users and open invitations with the
 * address, if the provider verified it. A user whom another subject of the provider has used stays out: the address may
 * belong to a new person now.
 */
export async function findSignInOptions(
  db: Db,
  identity: Identity,
  nowMs: number,
): Promise<{ options: SignInOption[]; isLinkedToOther: boolean }> {
  const { email, refusal } = identity
  if (refusal === 'email_domain_not_listed') return { options: [], isLinkedToOther: false }
  const linked = await findUsersOfIdentity(db, identity)
  const ids = new Set(linked.map((row) => row.user_id))
  const found =
    refusal === undefined && email !== undefined
      ? [...(await findUsersToSignIn(db, email)), ...(await findOpenInvitations(db, email, nowMs))]
      : []
  const others = await usersOfOthers(db, identity, found)
  return {
    options: [
      ...linked.map((row) => ({ ...row, isLinked: true })),
      ...found
        .filter((row) => !ids.has(row.user_id) && !others.has(row.user_id))
        .map((row) => ({ ...row, isLinked: false })),
    ],
    isLinkedToOther: others.size > 0,
  }
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
