import { z } from 'zod'
import { secretsEqual } from '../../../policy/secrets-equal.ts'
import { userCaller, EVERY_ROLE, ROLES } from '../foundation/caller.ts'
import { Failure, invalid, notFound } from '../foundation/failure.ts'
import { holderOf } from '../foundation/shared-slots.ts'
import { Id, Success, assertUnchanged } from '../operations/fields.ts'
import { operation, type Call } from '../operations/operation.ts'
import type { Row } from '../persistence/schema.ts'
import { assertGoodPassword, hashPassword, verifyPassword } from './passwords.ts'
import { SessionRecord, toSessionRecord, toUserRecord, USER_SYSTEM_FIELDS, UserName, UserRecord } from './schema.ts'
import { endSession, endSessionsOf, listSessions, writeMode, NOTHING_BEGUN, type Begun } from './sessions.ts'
import { countTry, failedSignIn, NewPassword, Password } from './sign-in-operations.ts'
import { accountName, updateUserRow, deletePasskeysOf, findUser } from './user-queries.ts'
import type { Db } from '../persistence/database.ts'
import { listPasskeys } from './passkeys.ts'

/**
 * Changes of credentials in two steps. What the first step makes is stored in the row of the session. So it ends with
 * the session, and no other session can finish the change.
 */

/** Validity of the secret of an authenticator app until a code confirms it, ms. */
export const NEW_APP_MS = 10 * 60_000

/** The calling user. Throws 401 if the user was removed. */
export async function ownUser(call: Call): Promise<Row<'console_user'>> {
  const user = await findUser(call.db, userCaller(call.caller).keyId)
  if (!user) throw new Failure('unauthenticated', 'this user was removed')
  return user
}

/** Throws 403 if the user has a second factor and the session was not confirmed with one. */
export async function assertMayChangeFactors(call: Call, user: Row<'console_user'>): Promise<void> {
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

/** Operations of a user about the own sessions and profile. Every role may call them. */

export const signOut = operation({
  name: 'signOut',
  area: 'users',
  minimumPackage: 'DISCOVER',
  callers: [],
  roles: EVERY_ROLE,
  summary: 'Ends the session of this call.',
  changes: true,
  request: z.strictObject({}),
  response: z.strictObject(Success),
  example: {},
  async run(call) {
    const { keyId, sessionId } = userCaller(call.caller)
    await endSession(call.db, sessionId)
    call.changed(keyId)
    return { success: true as const }
  },
})

export const fetchSessions = operation({
  name: 'fetchSessions',
  area: 'users',
  minimumPackage: 'DISCOVER',
  callers: [],
  roles: EVERY_ROLE,
  summary: 'Lists the sessions of the calling user, oldest first.',
  changes: false,
  request: z.strictObject({}),
  response: z.strictObject({ ...Success, sessions: z.array(SessionRecord) }),
  example: {},
  async run(call) {
    const { keyId, sessionId } = userCaller(call.caller)
    const rows = (await listSessions(call.db, keyId)).filter((row) => row.expires_ms > call.nowMs)
    return { success: true as const, sessions: rows.map((row) => toSessionRecord(row, sessionId)) }
  },
})

export const endSessions = operation({
  name: 'endSessions',
  area: 'users',
  minimumPackage: 'DISCOVER',
  callers: [],
  roles: EVERY_ROLE,
  summary: 'Ends one session of the calling user, or all of them.',
  description: 'Without `sessionId` it ends every session, also the session of this call.',
  changes: true,
  request: z.strictObject({ sessionId: Id.optional() }),
  response: z.strictObject({ ...Success, ended: z.int() }),
  example: {},
  async run(call, { sessionId }) {
    const { keyId } = userCaller(call.caller)
    call.changed(keyId)
    if (sessionId === undefined) return { success: true as const, ended: await endSessionsOf(call.db, keyId) }
    const own = await listSessions(call.db, keyId)
    if (!own.some((row) => row.session_id === sessionId)) throw notFound('session')
    await endSession(call.db, sessionId)
    return { success: true as const, ended: 1 }
  },
})

/** The rights of a session. */
const PROFILE_FIELDS = {
  account: z.string().describe('Name of the account.'),
  mode: z.enum(['test', 'live']),
  mayUseLive: z.boolean().describe('False: add a second factor and sign in again.'),
  hasSecondFactor: z.boolean().describe('True if this session was confirmed with a second factor.'),
  hasPassword: z.boolean().describe('False if the user signs in only with a passkey or OpenID Connect.'),
  hasAuthenticatorApp: z.boolean().describe('True if a sign-in with the password needs a code.'),
}

export const fetchProfile = operation({
  name: 'fetchProfile',
  area: 'users',
  minimumPackage: 'DISCOVER',
  callers: [],
  roles: EVERY_ROLE,
  summary: 'Returns the calling user and the rights of this session.',
  changes: false,
  request: z.strictObject({}),
  response: UserRecord.extend({
    ...Success,
    ...PROFILE_FIELDS,
  }),
  example: {},
  async run(call) {
    const { mode, mayUseLive, hasSecondFactor, accountId } = userCaller(call.caller)
    const account = await accountName(call.db, accountId)
    const user = await ownUser(call)
    return {
      success: true as const,
      ...toUserRecord(user),
      account,
      mode,
      mayUseLive,
      hasSecondFactor,
      hasPassword: user.password_hash !== null,
      hasAuthenticatorApp: user.totp_secret !== null,
    }
  },
})

export const updateProfile = operation({
  name: 'updateProfile',
  area: 'users',
  minimumPackage: 'DISCOVER',
  callers: [],
  roles: EVERY_ROLE,
  summary: 'Changes the name of the calling user.',
  changes: true,
  request: z.strictObject({
    name: UserName,
    ...USER_SYSTEM_FIELDS,
    ...UserRecord.pick({ userId: true, role: true, storeIds: true, sandboxOnly: true }).partial().shape,
    ...z.strictObject(PROFILE_FIELDS).partial().shape,
  }),
  response: UserRecord.extend(Success),
  example: { name: 'Jana Petersen' },
  async run(call, { name, userId, email, role, storeIds, sandboxOnly, createdAt }) {
    const user = await ownUser(call)
    assertUnchanged({ userId, email, role, storeIds, sandboxOnly, createdAt }, toUserRecord(user))
    await updateUserRow(call.db, user.user_id, { name })
    call.changed(user.user_id)
    return { success: true as const, ...toUserRecord({ ...user, name }) }
  },
})

export const switchMode = operation({
  name: 'switchMode',
  area: 'users',
  minimumPackage: 'DISCOVER',
  callers: [],
  roles: ROLES,
  summary: 'Chooses sandbox or live data for this session and for later ones.',
  changes: true,
  request: z.strictObject({ mode: z.enum(['test', 'live']) }),
  response: z.strictObject({ ...Success, mode: z.enum(['test', 'live']) }),
  example: { mode: 'test' },
  async run(call, { mode }) {
    const { keyId, sessionId, mayUseLive } = userCaller(call.caller)
    if (mode === 'live' && !mayUseLive)
      throw new Failure(
        'permission-denied',
        'this session may use sandbox data only: owners add a second factor and sign in again',
        { reason: 'second_factor_needed' },
      )
    await writeMode(call.db, sessionId, mode)
    await updateUserRow(call.db, keyId, { mode })
    call.changed(keyId)
    return { success: true as const, mode }
  },
})

export const changePassword = operation({
  name: 'changePassword',
  area: 'users',
  minimumPackage: 'DISCOVER',
  callers: [],
  roles: EVERY_ROLE,
  summary: 'Changes the password of the calling user. Ends all other sessions.',
  description: 'A user who has a second factor must have signed in with it.',
  changes: true,
  request: z.strictObject({ password: Password, newPassword: NewPassword }),
  response: z.strictObject({ ...Success, endedSessions: z.int() }),
  example: { password: 'four words nobody guesses', newPassword: 'five other words nobody guesses' },
  countTry: async (call) => countTry(call, subjectsOf(await ownUser(call))),
  async prepare(call, { password, newPassword }) {
    const user = await ownUser(call)
    await assertMayChangeFactors(call, user)
    if (secretsEqual(password, newPassword)) throw invalid('newPassword', 'must differ from the present password')
    assertGoodPassword(newPassword, [user.name, user.email, user.email.split('@')[0] ?? ''], 'newPassword')
    const isRight = await verifyPassword(holderOf(call.caller), password, user.password_hash)
    return {
      former: isRight ? user.password_hash : undefined,
      next: isRight ? await hashPassword(holderOf(call.caller), newPassword, call.services.platform.random) : '',
    }
  },
  async run(call, _, { former, next }) {
    const user = await ownUser(call)
    await assertMayChangeFactors(call, user)
    if (typeof former !== 'string' || user.password_hash !== former) throw failedSignIn('the present password is wrong')
    await updateUserRow(call.db, user.user_id, { password_hash: next })
    call.changed(user.user_id)
    const { sessionId } = userCaller(call.caller)
    return { success: true as const, endedSessions: await endOtherCredentialSteps(call.db, user.user_id, sessionId) }
  },
})

/** Failures of a signed-in user count for the user only, so that they lock neither an e-mail address nor the store. */
function subjectsOf({ user_id }: Row<'console_user'>): { user: string; address: string } {
  return { user: user_id, address: user_id }
}
