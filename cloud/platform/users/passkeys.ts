import { sql } from 'kysely'
import type { Db } from '../persistence/database.ts'
import type { Row } from '../persistence/schema.ts'
import { z } from 'zod'
import { iso, text } from '../operations/fields.ts'
import type { Randomness } from '../../../policy/platform.ts'
import type { Sealer } from '../authority/sealing.ts'
import { deleteSome } from '../persistence/delete-some.ts'

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
export function pruneChallenges(db: Db, nowMs: number): Promise<number> {
  return deleteSome(db, 'used_challenge', ['challenge'], sql`expires_ms <= ${nowMs}`)
}

/** Requests and responses about passkeys. The objects for and from the browser have the JSON forms of WebAuthn. */

const base64url = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[\w-]+$/, 'must be base64url')
const TRANSPORTS_LIMIT = 10

const Credential = {
  id: base64url(1_400),
  rawId: base64url(1_400),
  type: z.literal('public-key'),
  authenticatorAttachment: z.string().max(40).nullish(),
  clientExtensionResults: z.record(z.string(), z.unknown()).optional(),
}

/** Response of `navigator.credentials.create`. */
export const NewCredential = z.strictObject({
  ...Credential,
  response: z.strictObject({
    clientDataJSON: base64url(4_096),
    attestationObject: base64url(8_192),
    transports: z.array(z.string().max(40)).max(TRANSPORTS_LIMIT).optional(),
    authenticatorData: base64url(8_192).optional(),
    publicKey: base64url(4_096).optional(),
    publicKeyAlgorithm: z.int().optional(),
  }),
})

/** Response of `navigator.credentials.get`. */
export const SignedCredential = z.strictObject({
  ...Credential,
  response: z.strictObject({
    clientDataJSON: base64url(4_096),
    authenticatorData: base64url(4_096),
    signature: base64url(2_048),
    userHandle: base64url(100).nullish(),
  }),
})

/** Argument of `navigator.credentials.create`. */
export const CreationOptions = z.strictObject({
  challenge: z.string(),
  rp: z.strictObject({ id: z.string(), name: z.string() }),
  user: z.strictObject({ id: z.string(), name: z.string(), displayName: z.string() }),
  pubKeyCredParams: z.array(z.strictObject({ type: z.literal('public-key'), alg: z.int() })),
  timeout: z.int().describe('ms'),
  attestation: z.literal('none'),
  authenticatorSelection: z.strictObject({
    residentKey: z.literal('required'),
    requireResidentKey: z.literal(true),
    userVerification: z.literal('required'),
  }),
  excludeCredentials: z.array(
    z.strictObject({ id: z.string(), type: z.literal('public-key'), transports: z.array(z.string()) }),
  ),
})

/** Argument of `navigator.credentials.get`. */
export const RequestOptions = z.strictObject({
  challenge: z.string(),
  rpId: z.string(),
  timeout: z.int().describe('ms'),
  userVerification: z.literal('required'),
})

export const PasskeyName = text(80)

/** A passkey in listings. */
export const PasskeyRecord = z.strictObject({
  passkeyId: z.string(),
  name: z.string(),
  backedUp: z.boolean().describe('True if the passkey is copied to other devices of the user.'),
  createdAt: z.string(),
  lastUsedAt: z.string().optional(),
})

/** Converts a row. */
export function toPasskeyRecord(row: Row<'user_passkey'>): z.infer<typeof PasskeyRecord> {
  return {
    passkeyId: row.passkey_id,
    name: row.name,
    backedUp: row.backed_up === 1,
    createdAt: iso(row.created_ms),
    ...(row.last_used_ms !== null && { lastUsedAt: iso(row.last_used_ms) }),
  }
}

/** Maximum number of passkeys of one user. */
export const PASSKEYS_LIMIT = 10

/** The passkeys of a user, oldest first. */
export function listPasskeys(db: Db, userId: string): Promise<Row<'user_passkey'>[]> {
  return db.selectFrom('user_passkey').selectAll().where('user_id', '=', userId).orderBy('passkey_id').execute()
}

/** The passkey with the id that its authenticator gave it. */
export function findPasskey(db: Db, credentialId: string): Promise<Row<'user_passkey'> | undefined> {
  return db.selectFrom('user_passkey').selectAll().where('credential_id', '=', credentialId).executeTakeFirst()
}

/** The passkey of a user who may sign in. */
export function findPasskeyToSignIn(db: Db, credentialId: string): Promise<Row<'user_passkey'> | undefined> {
  return db
    .selectFrom('user_passkey')
    .innerJoin('console_user', 'console_user.user_id', 'user_passkey.user_id')
    .innerJoin('account', 'account.account_id', 'console_user.account_id')
    .selectAll('user_passkey')
    .where('credential_id', '=', credentialId)
    .where('accepted_ms', 'is not', null)
    .where('account.status', '=', 'active')
    .executeTakeFirst()
}

/** The WebAuthn user handle: the id of the user, base64url. */
export const userHandleOf = (userId: string) => Buffer.from(userId).toString('base64url')
