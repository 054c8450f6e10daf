import { z } from 'zod'
import { tenantOf, type Caller } from '../foundation/caller.ts'
import { Failure, precondition, type FailureExtras } from '../foundation/failure.ts'
import { holderOf } from '../foundation/shared-slots.ts'
import { iso } from '../operations/fields.ts'
import { operation, type Call, type SettleTry } from '../operations/operation.ts'
import type { Db } from '../persistence/database.ts'
import type { Row } from '../persistence/schema.ts'
import { acceptAs, invitedUser } from './invitations.ts'
import { assertGoodPassword, hashPassword, PASSWORD_LENGTH, verifyPassword } from './passwords.ts'
import { Device, Email, SignInAnswer, UserName } from './schema.ts'
import { startSession, type NewSession } from './sessions.ts'
import { findUsersToSignIn, roleOf, updateUserRow, type AccountUser } from './user-queries.ts'
import { hash } from 'node:crypto'
import { sql } from 'kysely'

/** Period in which failed sign-ins are counted, ms. */
export const FAILURE_PERIOD_MS = 15 * 60_000
/** Maximum number of failed sign-ins in a period: of one user, for one e-mail address, and of one client address. */
export const FAILURE_LIMITS = { user: 10, email: 10, address: 100 } as const

/** What failed sign-ins are counted for. */
export interface SignInSubjects {
  /** User or credential, if the caller named one. A success clears these failures. */
  readonly user?: string
  /**
   * E-mail address. Unknown addresses count like known ones, so that callers cannot tell them apart. A success does not clear
   * these failures, because a user of another account may have the same address.
   */
  readonly email?: string
  readonly address: string
}

const KINDS = ['user', 'email', 'address'] as const
type Kind = (typeof KINDS)[number]

const keyOf = (kind: Kind, subject: string) => hash('sha256', `${kind}\0${subject}`, 'base64url')

/** The counters of the subjects. */
const countersOf = (subjects: Partial<SignInSubjects>): { kind: Kind; key: string }[] =>
  KINDS.flatMap((kind) => {
    const subject = subjects[kind]
    return subject === undefined ? [] : [{ kind, key: keyOf(kind, subject) }]
  })

const tooManySignIns = (sinceMs: number, nowMs: number) =>
  new Failure('resource-exhausted', 'too many failed sign-ins: wait, then try again', {
    reason: 'too_many_sign_ins',
    retryAfter: Math.max(1, Math.ceil((sinceMs + FAILURE_PERIOD_MS - nowMs) / 1_000)),
  })

/** Counts a failure of each subject. Returns the counters. */
async function countFailure(db: Db, subjects: Partial<SignInSubjects>, nowMs: number) {
  const expiredMs = nowMs - FAILURE_PERIOD_MS
  await db.deleteFrom('sign_in_failure').where('since_ms', '<=', expiredMs).execute()
  const rows = []
  for (const { kind, key } of countersOf(subjects)) {
    const row = await db
      .insertInto('sign_in_failure')
      .values({ subject: key, count: 1, since_ms: nowMs })
      .onConflict((c) => c.column('subject').doUpdateSet({ count: sql`sign_in_failure.count + 1` }))
      .returning(['count', 'since_ms'])
      .executeTakeFirstOrThrow()
    rows.push({ kind, ...row })
  }
  return rows
}

/**
 * Counts a try of the subjects as failed until it was right (`Operation.countTry`). Throws 429 if one of the subjects
 * has too many.
 */
export async function countTry({ db, nowMs }: Call, subjects: SignInSubjects): Promise<SettleTry> {
  for (const { kind, count, since_ms } of await countFailure(db, subjects, nowMs))
    if (count > FAILURE_LIMITS[kind]) throw tooManySignIns(since_ms, nowMs)
  return (settling, isRight) => settleTry(settling, subjects, isRight)
}

/** Removes a try from the counts. A right secret also clears the failures of the user. */
async function settleTry(db: Db, subjects: SignInSubjects, isRight: boolean): Promise<void> {
  for (const { kind, key } of countersOf(subjects)) {
    const least = isRight && kind === 'user' ? Number.MAX_SAFE_INTEGER : 1
    await db.deleteFrom('sign_in_failure').where('subject', '=', key).where('count', '<=', least).execute()
    await db
      .updateTable('sign_in_failure')
      .set({ count: sql`count - 1` })
      .where('subject', '=', key)
      .execute()
  }
}

/** A new password. */
export const NewPassword = z
  .string()
  .min(PASSWORD_LENGTH.min)
  .max(PASSWORD_LENGTH.max)
  .describe('12 to 128 characters. The most common passwords are refused.')
/** A password that is compared. */
export const Password = z.string().min(1).max(PASSWORD_LENGTH.max)

/** Client address of a visitor. */
export const addressOf = (caller: Caller) => (caller.kind === 'anyone' ? caller.address : 'unknown')

/** Starts the session of a user and makes the response. */
export async function signedIn(
  call: Call,
  user: Row<'console_user'>,
  session: NewSession,
): Promise<z.infer<typeof SignInAnswer>> {
  const made = await startSession(call.db, user, session, call.services.platform)
  await updateUserRow(call.db, user.user_id, { last_sign_in_ms: call.nowMs })
  call.changed(user.user_id, tenantOf(user.account_id, made.mode))
  return {
    success: true,
    sessionToken: made.sessionToken,
    state: session.state,
    userId: user.user_id,
    role: roleOf(user),
    mode: made.mode,
    expiresAt: iso(made.expiresMs),
  }
}

/** 401 of a wrong secret: the try stays counted. The text is the same for wrong passwords and unknown users. */
export function failedSignIn(text: string, extras: FailureExtras = {}): Failure {
  return new Failure('unauthenticated', text, { reason: 'sign_in_failed', ...extras })
}

/** 409 that lists the accounts of a person who proved to be their user. */
export function severalAccounts(users: readonly AccountUser[], extras: FailureExtras = {}): Failure {
  const text = 'you are a user of several accounts: name one of `accounts` in `account`'
  return precondition('several_accounts', text, { ...extras, accounts: users.map((row) => row.account_name) })
}

export const signIn = operation({
  name: 'signIn',
  area: 'users',
  minimumPackage: 'DISCOVER',
  callers: ['anyone'],
  roles: [],
  summary: 'Signs a user in with e-mail address and password.',
  description:
    'Wrong passwords and unknown addresses get the same answer. After 10 failures in 15 minutes for an address the cloud refuses further tries. ' +
    'Users of several accounts may have the same address. Without `account` the password is compared with each of them. A password that does not fit all of them counts as a failure. If it fits several, the answer is 409 `several_accounts`, and `accounts` lists their names: call again with one of them.',
  changes: true,
  secretResponse: true,
  refusals: ['several_accounts'],
  request: z.strictObject({
    email: Email,
    password: Password,
    account: z.string().max(200).optional(),
    device: Device,
  }),
  response: SignInAnswer,
  example: { email: 'petersen@shop.example', password: 'four words nobody guesses' },
  countTry: (call, { email }) => countTry(call, { email, address: addressOf(call.caller) }),
  async prepare(call, { email, password, account }) {
    const users = await findUsersToSignIn(call.db, email, account)
    const fits = new Set<string | null>()
    // An unknown address takes as long as an address with one user. No match ends the comparisons early.
    for (const { password_hash } of users.length === 0 ? [{ password_hash: null }] : users)
      if (await verifyPassword(holderOf(call.caller), password, password_hash)) fits.add(password_hash)
    return fits
  },
  async run(call, { email, account, device = '' }, fits) {
    const compared = (await findUsersToSignIn(call.db, email, account)).filter((row) => row.password_hash !== null)
    // A password may have changed since it was compared.
    const users = compared.filter((row) => fits.has(row.password_hash))
    const [user, another] = users
    if (!user) throw failedSignIn('the e-mail address or the password is wrong')
    // A user could choose a password to find out whether a user of another account has it, too. So that is a guess.
    const countGuess = async (db: Db) => {
      if (users.length < compared.length) await countFailure(db, { email }, call.nowMs)
    }
    if (another) throw severalAccounts(users, { afterRefusal: countGuess })
    await countGuess(call.db)
    const state = user.totp_secret === null ? 'active' : 'pending'
    return signedIn(call, user, { state, hasSecondFactor: false, userAgent: device })
  },
})

export const acceptInvitation = operation({
  name: 'acceptInvitation',
  area: 'users',
  minimumPackage: 'DISCOVER',
  callers: ['anyone'],
  roles: [],
  summary: 'Accepts an invitation with a password, and signs the user in.',
  description: 'The token is the last part of the link. It is valid once.',
  changes: true,
  secretResponse: true,
  request: z.strictObject({ token: z.string().max(100), name: UserName, password: NewPassword, device: Device }),
  response: SignInAnswer,
  example: { token: 'untag_ui_…', name: 'Jana Petersen', password: 'four words nobody guesses' },
  async prepare(call, { token, name, password }) {
    const user = await invitedUser(call.db, token, call.nowMs)
    assertGoodPassword(password, [name, user.email, user.email.split('@')[0] ?? ''])
    return hashPassword(holderOf(call.caller), password, call.services.platform.random)
  },
  async run(call, { token, name, device = '' }, passwordHash) {
    const user = await invitedUser(call.db, token, call.nowMs)
    await acceptAs(call.db, user.user_id, { name, passwordHash }, call.nowMs)
    return signedIn(call, user, { state: 'active', hasSecondFactor: false, userAgent: device })
  },
})
