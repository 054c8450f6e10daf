import { hash } from 'node:crypto'
import { Secret, TOTP } from 'otpauth'
import type { Randomness } from '../../policy/platform.ts'
import type { Sealer } from '../authority/sealing.ts'
import type { UserRow } from '../persistence/tables/users.ts'

/** Time-based one-time passwords (RFC 6238) and recovery codes as the second factor. */

/** Period of a code, s; every authenticator app uses it. */
const PERIOD_S = 30
const SECRET_BYTES = 20
/** Steps before and after the present one whose codes count, because clocks differ. */
const WINDOW = 1
/** Number of recovery codes of a user. */
export const RECOVERY_CODES = 10
/** Without letters that look like digits. */
const ALPHABET = 'ABCDEFGHJKMNPQRSTVWXYZ0123456789'
const RECOVERY_LENGTH = 12

const contextOf = (userId: string) => `console_user/${userId}`
const sessionContextOf = (sessionId: string) => `user_session/${sessionId}`

/** Makes a secret for an authenticator app and seals it for the user. */
export function newTotpSecret(userId: string, sealer: Sealer, random: Randomness): string {
  return sealer.seal(Buffer.from(random.bytes(SECRET_BYTES)), contextOf(userId))
}

/** Seals the secret of a user for a session, which keeps it until a code confirms it. */
export function sealForSession(sealed: string, userId: string, sessionId: string, sealer: Sealer): string {
  return sealer.seal(sealer.open(sealed, contextOf(userId)), sessionContextOf(sessionId))
}

/** Seals the secret that a session kept for its user. */
export function sealForUser(sealed: string, userId: string, sessionId: string, sealer: Sealer): string {
  return sealer.seal(sealer.open(sealed, sessionContextOf(sessionId)), contextOf(userId))
}

function totpOf(sealed: string, { user_id, email }: UserRow, sealer: Sealer): TOTP {
  const secret = new Secret({ buffer: new Uint8Array(sealer.open(sealed, contextOf(user_id))).buffer })
  return new TOTP({ issuer: 'untag', label: email, secret, period: PERIOD_S })
}

/** What the user types or scans into the app: the secret in base32, and the address that the QR code contains. */
export function enrolmentOf(sealed: string, user: UserRow, sealer: Sealer): { secret: string; uri: string } {
  const totp = totpOf(sealed, user, sealer)
  return { secret: totp.secret.base32, uri: totp.toString() }
}

/** Checks a code of the app. Returns the number of its step, or undefined if the code is wrong, old or used. */
export function stepOfCode(
  sealed: string,
  user: UserRow,
  { code, nowMs, sealer }: { code: string; nowMs: number; sealer: Sealer },
): number | undefined {
  const token = code.replaceAll(/\s/g, '')
  const delta = totpOf(sealed, user, sealer).validate({ token, timestamp: nowMs, window: WINDOW })
  if (delta === null) return undefined
  const step = Math.floor(nowMs / 1_000 / PERIOD_S) + delta
  return step > user.totp_step ? step : undefined
}

/** Makes recovery codes. */
export function newRecoveryCodes(random: Randomness): string[] {
  return Array.from({ length: RECOVERY_CODES }, () =>
    [...random.bytes(RECOVERY_LENGTH)].map((byte) => ALPHABET[byte % ALPHABET.length]).join(''),
  )
}

/** Hash of a recovery code for the database. One round is enough, because a code holds 60 random bits. */
export function hashOfRecoveryCode(code: string): string {
  return hash('sha256', code.replaceAll(/[\s-]/g, '').toUpperCase(), 'base64url')
}

/** The hashes that remain after the use of a recovery code; undefined if the code is not one of the user's. */
export function withoutRecoveryCode(row: Pick<UserRow, 'recovery_codes'>, code: string): string[] | undefined {
  const hashes = JSON.parse(row.recovery_codes) as string[]
  const used = hashOfRecoveryCode(code)
  return hashes.includes(used) ? hashes.filter((each) => each !== used) : undefined
}
