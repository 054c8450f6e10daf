import { hash } from 'node:crypto'
import type { Randomness } from '../../policy/platform.ts'
import { Failure } from '../foundation/failure.ts'
import type { Db } from '../persistence/database.ts'

/** Challenges are in the database, because any process of the cloud may get the response. */

/** Validity of a challenge, ms. */
export const CHALLENGE_MS = 5 * 60_000
const CHALLENGE_BYTES = 32
/** Maximum number of open challenges: of one user or client address, and of all. */
export const CHALLENGE_LIMITS = { source: 100, all: 10_000 } as const

/** What a challenge is for: a registration by a user, or a sign-in by a visitor. */
export type ChallengePurpose = { readonly userId: string } | { readonly address: string }

const userOf = (purpose: ChallengePurpose) => ('userId' in purpose ? purpose.userId : null)

/** Makes a challenge, base64url. Deletes the oldest one if its source has too many. Throws 429 if all have too many. */
export async function newChallenge(
  db: Db,
  purpose: ChallengePurpose,
  nowMs: number,
  random: Randomness,
): Promise<string> {
  await pruneChallenges(db, nowMs)
  const source = 'userId' in purpose ? purpose.userId : hash('sha256', purpose.address, 'base64url')
  const open = db.selectFrom('passkey_challenge').select('challenge')
  const own = await open.where('source', '=', source).orderBy('expires_ms', 'desc').execute()
  for (const { challenge } of own.slice(CHALLENGE_LIMITS.source - 1)) await deleteChallenge(db, challenge)
  const all = await open.limit(CHALLENGE_LIMITS.all).execute()
  if (all.length >= CHALLENGE_LIMITS.all)
    throw new Failure('resource-exhausted', 'too many sign-ins were begun: wait, then try again', {
      reason: 'too_many_sign_ins',
      retryAfter: CHALLENGE_MS / 1_000,
    })
  const challenge = Buffer.from(random.bytes(CHALLENGE_BYTES)).toString('base64url')
  const row = { challenge, user_id: userOf(purpose), source, expires_ms: nowMs + CHALLENGE_MS }
  await db.insertInto('passkey_challenge').values(row).execute()
  return challenge
}

/** True if the challenge is open and was made for this purpose. */
export async function isOpenChallenge(
  db: Db,
  challenge: string,
  purpose: ChallengePurpose,
  nowMs: number,
): Promise<boolean> {
  const row = await db.selectFrom('passkey_challenge').selectAll().where('challenge', '=', challenge).executeTakeFirst()
  return row !== undefined && row.expires_ms > nowMs && row.user_id === userOf(purpose)
}

/** Deletes a challenge, because a response to it arrived. */
export async function deleteChallenge(db: Db, challenge: string): Promise<void> {
  await db.deleteFrom('passkey_challenge').where('challenge', '=', challenge).execute()
}

/** Deletes expired challenges. */
export async function pruneChallenges(db: Db, nowMs: number): Promise<void> {
  await db.deleteFrom('passkey_challenge').where('expires_ms', '<=', nowMs).execute()
}
