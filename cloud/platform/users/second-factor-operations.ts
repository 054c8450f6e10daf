import { z } from 'zod'
import { userCaller, EVERY_ROLE } from '../foundation/caller.ts'
import { precondition } from '../foundation/failure.ts'
import { Success } from '../operations/fields.ts'
import { operation, type Call } from '../operations/operation.ts'
import type { Row } from '../persistence/schema.ts'
import {
  assertMayChangeFactors,
  endOtherCredentialSteps,
  findBegun,
  NEW_APP_MS,
  ownUser,
  storeBegun,
} from './session-operations.ts'
import { Device, SignInAnswer } from './schema.ts'
import { endSession, findSession, writeSecondFactor } from './sessions.ts'
import { addressOf, countTry, failedSignIn, signedIn } from './sign-in-operations.ts'
import { findUser, updateUserRow } from './user-queries.ts'
import { hash } from 'node:crypto'
import { Secret, TOTP } from 'otpauth'
import type { Randomness } from '../../../policy/platform.ts'
import type { Sealer } from '../authority/sealing.ts'

/** Time-based one-time passwords (RFC 6238) and recovery codes as the second factor. */

/** Period of a code, s; every authenticator app uses it. */
const PERIOD_S = 30
const SECRET_BYTES = 20
/** Steps before and after the present one whose codes count, because clocks differ. */
const WINDOW = 1
/** Number of recovery codes of a user. */
const RECOVERY_CODES = 10
/** Without letters that look like digits. */
const ALPHABET = 'ABCDEFGHJKMNPQRSTVWXYZ0123456789'
const RECOVERY_LENGTH = 12

const contextOf = (userId: string) => `console_user/${userId}`
const sessionContextOf = (sessionId: string) => `user_session/${sessionId}`

/** Makes a secret for an authenticator app and seals it for the user. */
function newTotpSecret(userId: string, sealer: Sealer, random: Randomness): string {
  return sealer.seal(Buffer.from(random.bytes(SECRET_BYTES)), contextOf(userId))
}

/** Seals the secret of a user for a session, which keeps it until a code confirms it. */
function sealForSession(sealed: string, userId: string, sessionId: string, sealer: Sealer): string {
  return sealer.seal(sealer.open(sealed, contextOf(userId)), sessionContextOf(sessionId))
}

/** Seals the secret that a session kept for its user. */
function sealForUser(sealed: string, userId: string, sessionId: string, sealer: Sealer): string {
  return sealer.seal(sealer.open(sealed, sessionContextOf(sessionId)), contextOf(userId))
}

function totpOf(sealed: string, { user_id, email }: Row<'console_user'>, sealer: Sealer): TOTP {
  const secret = new Secret({ buffer: new Uint8Array(sealer.open(sealed, contextOf(user_id))).buffer })
  return new TOTP({ issuer: 'untag', label: email, secret, period: PERIOD_S })
}

/** What the user types or scans into the app: the secret in base32, and the address that the QR code contains. */
function enrolmentOf(sealed: string, user: Row<'console_user'>, sealer: Sealer): { secret: string; uri: string } {
  const totp = totpOf(sealed, user, sealer)
  return { secret: totp.secret.base32, uri: totp.toString() }
}

/** Checks a code of the app. Returns the number of its step, or undefined if the code is wrong, old or used. */
function stepOfCode(
  sealed: string,
  user: Row<'console_user'>,
  { code, nowMs, sealer }: { code: string; nowMs: number; sealer: Sealer },
): number | undefined {
  const token = code.replaceAll(/\s/g, '')
  const delta = totpOf(sealed, user, sealer).validate({ token, timestamp: nowMs, window: WINDOW })
  if (delta === null) return undefined
  const step = Math.floor(nowMs / 1_000 / PERIOD_S) + delta
  return step > user.totp_step ? step : undefined
}

/** Makes recovery codes. */
function newRecoveryCodes(random: Randomness): string[] {
  return Array.from({ length: RECOVERY_CODES }, () =>
    [...random.bytes(RECOVERY_LENGTH)].map((byte) => ALPHABET[byte % ALPHABET.length]).join(''),
  )
}

/** Hash of a recovery code for the database. One round is enough, because a code holds 60 random bits. */
function hashOfRecoveryCode(code: string): string {
  return hash('sha256', code.replaceAll(/[\s-]/g, '').toUpperCase(), 'base64url')
}

/** The hashes that remain after the use of a recovery code; undefined if the code is not one of the user's. */
function withoutRecoveryCode(row: Pick<Row<'console_user'>, 'recovery_codes'>, code: string): string[] | undefined {
  const hashes = JSON.parse(row.recovery_codes) as string[]
  const used = hashOfRecoveryCode(code)
  return hashes.includes(used) ? hashes.filter((each) => each !== used) : undefined
}

/** Code of an authenticator app, or a recovery code. */
const Code = z.string().min(6).max(40).describe('Six digits of the authenticator app, or a recovery code.')

const subjectsOf = (user: Row<'console_user'>, address = user.user_id) => ({
  user: `code ${user.user_id}`,
  address,
})

/** Counts a code of the calling user. */
const countOwnTry = async (call: Call) => countTry(call, subjectsOf(await ownUser(call)))

/** Uses up a code of the app or a recovery code. Throws 401 if it is wrong. */
async function useCode(call: Call, user: Row<'console_user'>, code: string): Promise<void> {
  const { sealer } = call.services.authority
  const step =
    user.totp_secret === null ? undefined : stepOfCode(user.totp_secret, user, { code, nowMs: call.nowMs, sealer })
  const rest = step === undefined ? withoutRecoveryCode(user, code) : undefined
  if (step === undefined && !rest) throw failedSignIn('the code is wrong or was used')
  await updateUserRow(call.db, user.user_id, {
    ...(step !== undefined && { totp_step: step }),
    ...(rest && { recovery_codes: JSON.stringify(rest) }),
  })
}

/** Throws 403 or 409 if the session may not add an authenticator app. Each step checks it. */
async function assertMayAddApp(call: Call, user: Row<'console_user'>): Promise<void> {
  await assertMayChangeFactors(call, user)
  if (user.totp_secret !== null)
    throw precondition('second_factor_exists', 'the user has a second factor: remove it first')
}

export const beginSecondFactor = operation({
  name: 'beginSecondFactor',
  area: 'users',
  minimumPackage: 'DISCOVER',
  callers: [],
  roles: EVERY_ROLE,
  summary: 'Makes the secret for an authenticator app of the calling user.',
  description:
    'The second factor counts only after `confirmSecondFactor` in the same session, within 10 minutes. A later call replaces the secret. Every other change of a password, passkey or second factor discards it.',
  changes: true,
  secretResponse: true,
  refusals: ['second_factor_exists'],
  request: z.strictObject({}),
  response: z.strictObject({
    ...Success,
    secret: z.string().describe('Base32, to type into the app.'),
    uri: z.string().describe('Content of the QR code: otpauth://totp/…'),
  }),
  example: {},
  async run(call) {
    const user = await ownUser(call)
    await assertMayAddApp(call, user)
    const { authority, platform } = call.services
    const sealed = newTotpSecret(user.user_id, authority.sealer, platform.random)
    const kept = sealForSession(sealed, user.user_id, userCaller(call.caller).sessionId, authority.sealer)
    await storeBegun(call, { totp_next: kept, totp_next_expires_ms: call.nowMs + NEW_APP_MS })
    call.changed(user.user_id)
    return { success: true as const, ...enrolmentOf(sealed, user, authority.sealer) }
  },
})

export const confirmSecondFactor = operation({
  name: 'confirmSecondFactor',
  area: 'users',
  minimumPackage: 'DISCOVER',
  callers: [],
  roles: EVERY_ROLE,
  summary: 'Confirms the authenticator app with a code. Ends all other sessions.',
  description: 'Each recovery code replaces one code of the app, once. They are shown only here.',
  changes: true,
  secretResponse: true,
  refusals: ['second_factor_exists', 'second_factor_not_begun'],
  request: z.strictObject({ code: Code }),
  response: z.strictObject({ ...Success, recoveryCodes: z.array(z.string()) }),
  example: { code: '492039' },
  countTry: countOwnTry,
  async run(call, { code }) {
    const user = await ownUser(call)
    await assertMayAddApp(call, user)
    const begun = await findBegun(call)
    if (begun.totpNext === null)
      throw precondition(
        'second_factor_not_begun',
        'this session has no open setup of an authenticator app: start it again, and confirm it within 10 minutes',
      )
    const { authority, platform } = call.services
    const { sessionId } = userCaller(call.caller)
    const secret = sealForUser(begun.totpNext, user.user_id, sessionId, authority.sealer)
    const step = stepOfCode(secret, user, { code, nowMs: call.nowMs, sealer: authority.sealer })
    if (step === undefined) throw failedSignIn('the code is wrong or was used')
    const recoveryCodes = newRecoveryCodes(platform.random)
    await updateUserRow(call.db, user.user_id, {
      totp_secret: secret,
      totp_step: step,
      recovery_codes: JSON.stringify(recoveryCodes.map(hashOfRecoveryCode)),
    })
    await writeSecondFactor(call.db, sessionId)
    await endOtherCredentialSteps(call.db, user.user_id, sessionId)
    call.changed(user.user_id)
    return { success: true as const, recoveryCodes }
  },
})

export const removeSecondFactor = operation({
  name: 'removeSecondFactor',
  area: 'users',
  minimumPackage: 'DISCOVER',
  callers: [],
  roles: EVERY_ROLE,
  summary: 'Removes the second factor of the calling user. Ends all sessions.',
  changes: true,
  refusals: ['second_factor_missing'],
  request: z.strictObject({ code: Code }),
  response: z.strictObject(Success),
  example: { code: '492039' },
  countTry: countOwnTry,
  async run(call, { code }) {
    const user = await ownUser(call)
    if (user.totp_secret === null) throw precondition('second_factor_missing', 'the user has no second factor')
    await useCode(call, user, code)
    await updateUserRow(call.db, user.user_id, { totp_secret: null, recovery_codes: '[]' })
    await endOtherCredentialSteps(call.db, user.user_id)
    call.changed(user.user_id)
    return { success: true as const }
  },
})

export const confirmSignIn = operation({
  name: 'confirmSignIn',
  area: 'users',
  minimumPackage: 'DISCOVER',
  callers: ['anyone'],
  roles: [],
  summary: 'Completes a sign-in with the second factor.',
  description: '`sessionToken` is that of `signIn` with the state `pending`. The response contains a new one.',
  changes: true,
  secretResponse: true,
  request: z.strictObject({ sessionToken: z.string().max(100), code: Code, device: Device }),
  response: SignInAnswer,
  example: { sessionToken: 'untag_us_…', code: '492039' },
  async countTry(call, { sessionToken }) {
    const { user } = await pendingSignIn(call, sessionToken)
    return countTry(call, subjectsOf(user, addressOf(call.caller)))
  },
  async run(call, { sessionToken, code, device = '' }) {
    const { user, sessionId } = await pendingSignIn(call, sessionToken)
    await useCode(call, user, code)
    await endSession(call.db, sessionId)
    return signedIn(call, user, { state: 'active', hasSecondFactor: true, userAgent: device })
  },
})

/** The sign-in that waits for a code. Throws 401 if it has ended. */
async function pendingSignIn(call: Call, sessionToken: string) {
  const found = await findSession(call.db, sessionToken, call.nowMs)
  const user = found?.state === 'pending' ? await findUser(call.db, found.caller.keyId) : undefined
  if (!found || !user) throw failedSignIn('the sign-in has expired: sign in again')
  return { user, sessionId: found.caller.sessionId }
}
