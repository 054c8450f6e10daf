import { newId } from '../../../policy/ids.ts'
import type { Platform } from '../../../policy/platform.ts'
import { tenantOf, type Mode, isRoleAtLeast, PLATFORM_ROLE, type UserRole } from '../foundation/caller.ts'
import { Failure, invalid, notFound, precondition } from '../foundation/failure.ts'
import type { Db } from '../persistence/database.ts'
import type { Row } from '../persistence/schema.ts'
import { findStore } from '../stores/queries.ts'
import { endSessionsOf } from './sessions.ts'
import {
  coversStores,
  deletePasskeysOf,
  findUser,
  findUserOfAccount,
  findUserOfInvitation,
  insertUser,
  listUsers,
  roleOf,
  storesOf,
  updateUserRow,
  USERS_LIMIT,
  hashOfUserToken,
  isUserToken,
  newUserToken,
} from './user-queries.ts'

/** Validity of an invitation, ms. */
const INVITATION_MS = 7 * 24 * 3_600_000

interface NewInvitation {
  readonly accountId: string
  readonly email: string
  readonly name: string
  readonly role: UserRole
  readonly storeIds: readonly string[] | null
  readonly sandboxOnly: boolean
  readonly invitedBy: string
  /** True to invite a user again who has already accepted. Accepting then sets a new password. */
  readonly mayReplace: boolean
}

interface Invitation {
  readonly token: string
  readonly userId: string
  readonly expiresMs: number
}

/**
 * Invites a person, or renews the open invitation of the person. The link is valid once. Throws 409 `user_exists` if
 * the person has accepted before.
 */
export async function invite(db: Db, wanted: NewInvitation, platform: Platform): Promise<Invitation> {
  const nowMs = platform.clock.wall()
  const token = newUserToken('invitation', platform.random)
  const known = await findUserOfAccount(db, wanted.accountId, wanted.email)
  if (known && known.accepted_ms !== null && !wanted.mayReplace)
    throw precondition('user_exists', 'this address belongs to a user of the account: change it with updateUser')
  const rights = {
    role: wanted.role,
    store_ids: wanted.storeIds === null ? null : JSON.stringify(wanted.storeIds),
    sandbox_only: wanted.sandboxOnly ? 1 : 0,
    mode: wanted.sandboxOnly ? 'test' : await firstMode(db, wanted),
    invited_by: wanted.invitedBy,
    invitation_hash: hashOfUserToken(token),
    invitation_expires_ms: nowMs + INVITATION_MS,
  }
  const userId = known?.user_id ?? newId('usr', platform)
  if (known) {
    await updateUserRow(db, userId, rights)
    await endSessionsOf(db, userId)
  } else {
    await assertRoom(db, wanted.accountId)
    await insertUser(db, {
      ...rights,
      user_id: userId,
      account_id: wanted.accountId,
      email: wanted.email,
      name: wanted.name,
      password_hash: null,
      created_ms: nowMs,
      accepted_ms: null,
      last_sign_in_ms: null,
      totp_secret: null,
      totp_step: 0,
      recovery_codes: '[]',
    })
  }
  return { token, userId, expiresMs: nowMs + INVITATION_MS }
}

async function assertRoom(db: Db, accountId: string): Promise<void> {
  if ((await listUsers(db, accountId)).length >= USERS_LIMIT)
    throw precondition('too_many_users', `the account has ${USERS_LIMIT} users, which is the most: remove one`)
}

/** Mode of the first session: that of the first store, or live if the account has a live store. The platform has no other. */
async function firstMode(db: Db, { accountId, role, storeIds }: NewInvitation): Promise<Mode> {
  if (role === PLATFORM_ROLE) return 'live'
  const live = `${accountId}.live`
  if (storeIds !== null && storeIds[0] !== undefined)
    return (await findStore(db, storeIds[0]))?.tenant === live ? 'live' : 'test'
  const store = await db.selectFrom('store').select('store_id').where('tenant', '=', live).limit(1).executeTakeFirst()
  return store ? 'live' : 'test'
}

/** Throws 404 if the account does not have one of the stores in one of the modes. */
export async function assertStoresOf(
  db: Db,
  accountId: string,
  storeIds: readonly string[],
  modes: readonly Mode[] = ['test', 'live'],
): Promise<void> {
  const tenants: ReadonlySet<string> = new Set(modes.map((mode) => tenantOf(accountId, mode)))
  for (const storeId of storeIds) {
    const store = await findStore(db, storeId)
    if (!store || !tenants.has(store.tenant)) throw notFound('store')
  }
}

/** Throws 400 if an owner would be limited to stores. */
export function assertRoleFits(role: UserRole, storeIds: readonly string[] | null): void {
  if (role === 'owner' && storeIds !== null)
    throw invalid(
      'storeIds',
      'an owner has all stores: leave storeIds out, or choose another role',
      'owner_of_all_stores',
    )
}

/**
 * Stores name and password of a person who accepts; null: the person signs in with OpenID Connect. Ends the invitation and all sessions, and removes the second
 * factors, because a person who lost them is invited again.
 */
export async function acceptAs(
  db: Db,
  userId: string,
  { name, passwordHash }: { name: string; passwordHash: string | null },
  nowMs: number,
): Promise<void> {
  const accepted = { name, password_hash: passwordHash, invitation_hash: null, invitation_expires_ms: null }
  const noFactors = { totp_secret: null, recovery_codes: '[]' }
  await updateUserRow(db, userId, { ...accepted, ...noFactors })
  // A reset does not make an old user a new one.
  await db
    .updateTable('console_user')
    .set({ accepted_ms: nowMs })
    .where('user_id', '=', userId)
    .where('accepted_ms', 'is', null)
    .execute()
  await deletePasskeysOf(db, userId)
  await endSessionsOf(db, userId)
}

/** True if the invitation is open, and the user who made it may still grant its rights. */
export async function isOpenInvitation(db: Db, user: Row<'console_user'>, nowMs: number): Promise<boolean> {
  if (user.invitation_hash === null || (user.invitation_expires_ms ?? 0) <= nowMs) return false
  // The command line has all rights.
  if (!user.invited_by.startsWith('usr_')) return true
  const inviter = await findUser(db, user.invited_by)
  return (
    inviter !== undefined &&
    isRoleAtLeast(roleOf(inviter), 'manager') &&
    isRoleAtLeast(roleOf(inviter), roleOf(user)) &&
    (inviter.sandbox_only === 0 || user.sandbox_only === 1) &&
    coversStores(storesOf(inviter), storesOf(user))
  )
}

/** The user of an open invitation. Throws 404 if the invitation is unknown, used, expired or withdrawn. */
export async function invitedUser(db: Db, token: string, nowMs: number): Promise<Row<'console_user'>> {
  const user = isUserToken('invitation', token) ? await findUserOfInvitation(db, hashOfUserToken(token)) : undefined
  if (!user || !(await isOpenInvitation(db, user, nowMs)))
    throw new Failure('not-found', 'this invitation is unknown, used or expired: ask for a new one')
  return user
}
