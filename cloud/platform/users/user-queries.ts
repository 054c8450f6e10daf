import { type Mode, type UserRole, isRoleAtLeast } from '../foundation/caller.ts'
import type { Db } from '../persistence/database.ts'
import { prepared } from '../persistence/prepared.ts'
import type { Row } from '../persistence/schema.ts'
import { hash } from 'node:crypto'
import type { Randomness } from '../../../policy/platform.ts'
import { findKeyCallerById } from '../accounts/api-keys.ts'

const PREFIXES = { session: 'untag_us_', invitation: 'untag_ui_' } as const
const FORM = /^untag_u[si]_[\w-]{43}$/

/** Makes a token of 256 random bits. */
export function newUserToken(use: keyof typeof PREFIXES, random: Randomness): string {
  return `${PREFIXES[use]}${Buffer.from(random.bytes(32)).toString('base64url')}`
}

/** True if a text has the form of such a token. For all other texts, no database query is needed. */
export function isUserToken(use: keyof typeof PREFIXES, text: string): boolean {
  return text.startsWith(PREFIXES[use]) && FORM.test(text)
}

/** Hash for the database. One round of SHA-256 is enough, because tokens hold 256 random bits. */
export function hashOfUserToken(token: string): string {
  return hash('sha256', token, 'base64url')
}

/** Maximum number of users of one account. */
export const USERS_LIMIT = 1_000
/** Maximum number of accounts in which one e-mail address is looked up at sign-in. */
export const NAMESAKES_LIMIT = 20

/** The user with this id. */
export function findUser(db: Db, userId: string): Promise<Row<'console_user'> | undefined> {
  return db.selectFrom('console_user').selectAll().where('user_id', '=', userId).executeTakeFirst()
}

/** Users of an account, oldest first. */
export function listUsers(db: Db, accountId: string): Promise<Row<'console_user'>[]> {
  return db
    .selectFrom('console_user')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('user_id')
    .limit(USERS_LIMIT)
    .execute()
}

/** The user of an account with this address. */
export function findUserOfAccount(db: Db, accountId: string, email: string): Promise<Row<'console_user'> | undefined> {
  return db
    .selectFrom('console_user')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('email', '=', email)
    .executeTakeFirst()
}

/** A user with the name of the account. */
export interface AccountUser extends Row<'console_user'> {
  readonly account_name: string
}

/**
 * The users who may sign in with this address, by the name of the account. Other accounts may have users with the same
 * address, and nobody proves that it is theirs. So the order decides nothing.
 */
export async function findUsersToSignIn(db: Db, email: string, account?: string): Promise<AccountUser[]> {
  let query = db
    .selectFrom('console_user')
    .innerJoin('account', 'account.account_id', 'console_user.account_id')
    .selectAll('console_user')
    .select('account.name as account_name')
    .where('email', '=', email)
    .where('accepted_ms', 'is not', null)
    .where('account.status', '=', 'active')
  if (account !== undefined) query = query.where('account.name', '=', account)
  // The oldest, so that accounts which name somebody else's address later keep nobody out.
  const oldest = await query.orderBy('accepted_ms').limit(NAMESAKES_LIMIT).execute()
  return oldest.toSorted((a, b) => (a.account_name < b.account_name ? -1 : 1))
}

/** The user with this open invitation. */
export function findUserOfInvitation(db: Db, invitationHash: string): Promise<Row<'console_user'> | undefined> {
  return db.selectFrom('console_user').selectAll().where('invitation_hash', '=', invitationHash).executeTakeFirst()
}

/** Adds a user. */
export async function insertUser(db: Db, row: Row<'console_user'>): Promise<void> {
  await db.insertInto('console_user').values(row).execute()
}

/** Sets columns of a user. */
export async function updateUserRow(db: Db, userId: string, set: Partial<Row<'console_user'>>): Promise<void> {
  await db.updateTable('console_user').set(set).where('user_id', '=', userId).execute()
}

/** Deletes the passkeys of a user. */
export async function deletePasskeysOf(db: Db, userId: string): Promise<void> {
  await db.deleteFrom('user_passkey').where('user_id', '=', userId).execute()
}

/** Deletes a user with all sessions and passkeys. */
export async function deleteUser(db: Db, userId: string): Promise<void> {
  await deletePasskeysOf(db, userId)
  await db.deleteFrom('user_session').where('user_id', '=', userId).execute()
  await db.deleteFrom('console_user').where('user_id', '=', userId).execute()
}

/** The stores of a user; null: all stores of the account. */
export function storesOf(row: Pick<Row<'console_user'>, 'store_ids'>): readonly string[] | null {
  return row.store_ids === null ? null : (JSON.parse(row.store_ids) as string[])
}

/** True if all of `storeIds` are among `own`; null means all stores of the account. */
export function coversStores(own: readonly string[] | null, storeIds: readonly string[] | null): boolean {
  return own === null || (storeIds !== null && storeIds.every((storeId) => own.includes(storeId)))
}

/** Role and mode of a row. */
export const roleOf = (row: Pick<Row<'console_user'>, 'role'>) => row.role as UserRole
export const modeOf = (row: { mode: string }) => row.mode as Mode

const nameOfAccount = prepared((db, p: { accountId: string }) =>
  db.selectFrom('account').select('name').where('account_id', '=', p.accountId),
)

/** Name of an account. */
export async function accountName(db: Db, accountId: string): Promise<string> {
  const [row] = await nameOfAccount(db, { accountId })
  return row?.name ?? ''
}

/**
 * True if the key or user that made a code for a store may still manage this store. A code ends with the right of its
 * maker, like an invitation.
 */
export async function mayStillManage(
  db: Db,
  makerId: string,
  { tenant, store_id: storeId }: Pick<Row<'store'>, 'tenant' | 'store_id'>,
  nowMs: number,
): Promise<boolean> {
  const [accountId, mode] = tenant.split('.') as [string, Mode]
  if (makerId.startsWith('usr_')) {
    const user = await findUser(db, makerId)
    return (
      user?.account_id === accountId &&
      isRoleAtLeast(roleOf(user), 'manager') &&
      (mode === 'test' || user.sandbox_only === 0) &&
      coversStores(storesOf(user), [storeId])
    )
  }
  // The command line has all rights.
  if (!makerId.startsWith('key_')) return true
  const key = await findKeyCallerById(db, makerId, nowMs)
  return key?.kind === 'secret' && key.tenant === tenant && coversStores(key.storeIds, [storeId])
}
