import type { Randomness } from '../../../policy/platform.ts'
import type { Sealer } from '../authority/sealing.ts'
import type { Db } from '../persistence/database.ts'

/**
 * A challenge of a sign-in by passkey, or the choice of an account after a sign-in at a provider, is sealed and contains
 * its end, so any process of the cloud can check it. It takes no row, because anybody may ask for one. Only a sign-in
 * that succeeded adds a row, so that its challenge is valid once.
 */

/** Validity of a challenge, ms. */
export const CHALLENGE_MS = 5 * 60_000
const CHALLENGE_BYTES = 32
const CONTEXT = 'passkey_sign_in'

/** A challenge that has not expired. */
export interface OpenChallenge {
  readonly id: string
  readonly expiresMs: number
}

/** A new challenge for a registration, or a new id, base64url. */
export function randomChallenge(random: Randomness): string {
  return Buffer.from(random.bytes(CHALLENGE_BYTES)).toString('base64url')
}

/** A new challenge for a sign-in, base64url. */
export function newSignInChallenge(sealer: Sealer, nowMs: number, random: Randomness): string {
  const made: OpenChallenge = { id: randomChallenge(random), expiresMs: nowMs + CHALLENGE_MS }
  return Buffer.from(sealer.seal(Buffer.from(JSON.stringify(made)), CONTEXT)).toString('base64url')
}

/** The challenge of a sign-in; undefined if this cloud did not make it, or it has expired. */
export function openChallenge(sealer: Sealer, challenge: string, nowMs: number): OpenChallenge | undefined {
  try {
    const sealed = Buffer.from(challenge, 'base64url').toString()
    const made = JSON.parse(sealer.open(sealed, CONTEXT).toString()) as OpenChallenge
    return made.expiresMs > nowMs ? made : undefined
  } catch {
    return undefined
  }
}

/** Uses up a challenge. Returns false if a sign-in has used it before. */
export async function useChallenge(db: Db, { id, expiresMs }: OpenChallenge): Promise<boolean> {
  const added = await db
    .insertInto('used_challenge')
    .values({ challenge: id, expires_ms: expiresMs })
    .onConflict((c) => c.column('challenge').doNothing())
    .returning('challenge')
    .executeTakeFirst()
  return added !== undefined
}

/** Deletes used challenges that have expired. */
export async function pruneChallenges(db: Db, nowMs: number): Promise<void> {
  await db.deleteFrom('used_challenge').where('expires_ms', '<=', nowMs).execute()
}
