import { z } from 'zod'
import {
  userCaller,
  type Mode,
  PLATFORM_ROLE,
  type UserCaller,
  isRoleAtLeast,
  rolesFrom,
} from '../foundation/caller.ts'
import { Failure, notFound, precondition } from '../foundation/failure.ts'
import { Id, iso, Success, assertUnchanged } from '../operations/fields.ts'
import { operation, type Call } from '../operations/operation.ts'
import type { Row } from '../persistence/schema.ts'
import { consoleUrlOf, invitationUrl } from './console-address.ts'
import { assertRoleFits, assertStoresOf, invite } from './invitations.ts'
import {
  Email,
  RoleField,
  toUserRecord,
  USER_STORES_LIMIT,
  USER_SYSTEM_FIELDS,
  UserName,
  UserRecord,
} from './schema.ts'
import { endSessionsOf } from './sessions.ts'
import {
  coversStores,
  deleteUser,
  findUser,
  findUserOfAccount,
  listUsers,
  roleOf,
  storesOf,
  updateUserRow,
} from './user-queries.ts'

const EXAMPLE_USER = 'usr_01KANX6Y7C3V9Q2M8R5T4W6Z1B'
const StoreIds = z.array(Id).min(1).max(USER_STORES_LIMIT)

/** Modes whose stores the caller may name. A session of the sandbox must not learn which live stores exist. */
function modesOf({ mayUseLive }: UserCaller): readonly Mode[] {
  return mayUseLive ? ['test', 'live'] : ['test']
}

/** True if the caller may see the user: same account, and only stores of the caller. */
function maySeeUser(caller: UserCaller, row: Row<'console_user'>): boolean {
  return (
    row.account_id === caller.accountId &&
    (row.user_id === caller.keyId || coversStores(caller.storeIds, storesOf(row)))
  )
}

/** The user with this id, if the caller may change it. Throws 404 or 403. */
async function changeableUser(call: Call, userId: string): Promise<Row<'console_user'>> {
  const caller = userCaller(call.caller)
  const row = await findUser(call.db, userId)
  if (!row || !maySeeUser(caller, row)) throw notFound('user')
  assertMayGrant(caller, roleOf(row), row.sandbox_only === 1)
  return row
}

/** Throws 403 if the role, or the access to live data, is more than the caller has. */
function assertMayGrant(caller: UserCaller, role: UserCaller['role'], sandboxOnly: boolean): void {
  if (!isRoleAtLeast(caller.role, role))
    throw new Failure('permission-denied', `only a user with the role ${role} or higher may do this`, {
      reason: 'role_too_low',
    })
  if (!caller.mayUseLive && !sandboxOnly)
    throw new Failure(
      'permission-denied',
      'this session may use sandbox data only, so it may manage only users with sandboxOnly: add a second factor and sign in again',
      { reason: 'second_factor_needed' },
    )
}

/** Throws 409 if the account would have no owner. */
async function assertOwnerLeft(call: Call, row: Row<'console_user'>): Promise<void> {
  if (roleOf(row) !== 'owner' || row.accepted_ms === null) return
  const others = (await listUsers(call.db, row.account_id)).filter(
    (other) => other.user_id !== row.user_id && roleOf(other) === 'owner' && other.accepted_ms !== null,
  )
  if (others.length === 0)
    throw precondition('last_owner', 'this is the last owner of the account: make another user an owner first')
}

export const inviteUser = operation({
  name: 'inviteUser',
  area: 'users',
  minimumPackage: 'DISCOVER',
  callers: [],
  roles: rolesFrom('manager'),
  summary: 'Invites a person to the console. Only this response contains the link.',
  description:
    'Send `url` to the person. The link is valid once, for 7 days; another call for the same address replaces it. It becomes invalid if the inviting user is removed, or may no longer grant these rights. Nobody invites a role above the own one. A user with `storeIds` invites to these stores only. A session that may use sandbox data only invites users with `sandboxOnly`.',
  refusals: ['user_exists', 'too_many_users'],
  changes: true,
  secretResponse: true,
  request: z.strictObject({
    email: Email,
    name: UserName.optional(),
    role: RoleField,
    storeIds: StoreIds.optional().describe('Limits the user to these stores. Default: the stores of the caller.'),
    sandboxOnly: z.boolean().optional().describe('Default: false, if the caller may use live data.'),
  }),
  response: z.strictObject({
    ...Success,
    userId: z.string(),
    url: z.string(),
    expiresAt: z.string(),
    email: z.string(),
    role: RoleField,
    storeIds: z.array(z.string()).nullable().describe('Null: all stores of the account.'),
    sandboxOnly: z.boolean(),
  }),
  example: { email: 'petersen@shop.example', role: 'manager' },
  async run(call, { email, name = '', role, storeIds, sandboxOnly }) {
    const caller = userCaller(call.caller)
    const isSandboxOnly = sandboxOnly ?? !caller.mayUseLive
    assertMayGrant(caller, role, isSandboxOnly)
    const stores = storeIds === undefined ? caller.storeIds : [...new Set(storeIds)]
    assertRoleFits(role, stores)
    if (!coversStores(caller.storeIds, stores)) throw notFound('store')
    await assertStoresOf(call.db, caller.accountId, stores ?? [], modesOf(caller))
    const known = await findUserOfAccount(call.db, caller.accountId, email)
    if (known) await changeableUser(call, known.user_id)
    const { platform, config } = call.services
    const wanted = { accountId: caller.accountId, email, name, role, storeIds: stores }
    const made = await invite(
      call.db,
      { ...wanted, sandboxOnly: isSandboxOnly, invitedBy: caller.keyId, mayReplace: false },
      platform,
    )
    call.changed(made.userId)
    const url = invitationUrl(consoleUrlOf(config), made.token)
    const expiresAt = iso(made.expiresMs)
    return {
      success: true as const,
      userId: made.userId,
      url,
      expiresAt,
      email,
      role,
      storeIds: stores === null ? null : [...stores],
      sandboxOnly: isSandboxOnly,
    }
  },
})

export const fetchUsers = operation({
  name: 'fetchUsers',
  area: 'users',
  minimumPackage: 'DISCOVER',
  callers: [],
  roles: [...rolesFrom('manager'), PLATFORM_ROLE],
  summary: 'Lists the users of the account, oldest first.',
  description:
    'A user with `storeIds` sees only users of these stores. A person who runs the cloud sees the others who do.',
  changes: false,
  request: z.strictObject({}),
  response: z.strictObject({ ...Success, users: z.array(UserRecord) }),
  example: {},
  async run(call) {
    const caller = userCaller(call.caller)
    const rows = (await listUsers(call.db, caller.accountId)).filter((row) => maySeeUser(caller, row))
    return { success: true as const, users: rows.map(toUserRecord) }
  },
})

export const updateUser = operation({
  name: 'updateUser',
  area: 'users',
  minimumPackage: 'DISCOVER',
  callers: [],
  roles: rolesFrom('manager'),
  summary: 'Changes role, stores or access of a user. Ends all sessions of the user.',
  description:
    'Nobody changes a user with a role above the own one, or sets such a role. The last owner keeps the role. `storeIds: null` gives the user all stores of the account.',
  refusals: ['last_owner'],
  changes: true,
  request: z.strictObject({
    userId: Id,
    role: RoleField.optional(),
    storeIds: StoreIds.nullable().optional(),
    sandboxOnly: z.boolean().optional(),
    name: UserRecord.shape.name.optional().describe('Only the user can change it, with `updateProfile`.'),
    ...USER_SYSTEM_FIELDS,
  }),
  response: UserRecord.extend(Success),
  example: { userId: EXAMPLE_USER, role: 'associate' },
  async run(call, { userId, role, storeIds, sandboxOnly, email, name, createdAt }) {
    const caller = userCaller(call.caller)
    const row = await changeableUser(call, userId)
    assertUnchanged({ email, name, createdAt }, toUserRecord(row))
    const stores = storeIds === undefined ? storesOf(row) : storeIds && [...new Set(storeIds)]
    const next = { role: role ?? roleOf(row), sandboxOnly: sandboxOnly ?? row.sandbox_only === 1 }
    assertMayGrant(caller, next.role, next.sandboxOnly)
    assertRoleFits(next.role, stores)
    if (!coversStores(caller.storeIds, stores)) throw notFound('store')
    await assertStoresOf(call.db, caller.accountId, stores ?? [], modesOf(caller))
    if (next.role !== 'owner') await assertOwnerLeft(call, row)
    const set = {
      role: next.role,
      store_ids: stores === null ? null : JSON.stringify(stores),
      sandbox_only: next.sandboxOnly ? 1 : 0,
    }
    // An open invitation needs the right of the user who granted the rights.
    await updateUserRow(call.db, userId, { ...set, invited_by: caller.keyId })
    await endSessionsOf(call.db, userId)
    call.changed(userId)
    return { success: true as const, ...toUserRecord({ ...row, ...set }) }
  },
})

export const removeUser = operation({
  name: 'removeUser',
  area: 'users',
  minimumPackage: 'DISCOVER',
  callers: [],
  roles: rolesFrom('manager'),
  summary: 'Removes a user, or withdraws an open invitation. Ends all sessions of the user at once.',
  refusals: ['last_owner'],
  changes: true,
  request: z.strictObject({ userId: Id }),
  response: z.strictObject({ ...Success, userId: z.string() }),
  example: { userId: EXAMPLE_USER },
  async run(call, { userId }) {
    const row = await changeableUser(call, userId)
    await assertOwnerLeft(call, row)
    await deleteUser(call.db, userId)
    call.changed(userId)
    return { success: true as const, userId }
  },
})
