import { z } from 'zod'
import { iso, text } from '../operations/fields.ts'
import type { UserPasskeyRow } from '../persistence/tables/users.ts'

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
export function toPasskeyRecord(row: UserPasskeyRow): z.infer<typeof PasskeyRecord> {
  return {
    passkeyId: row.passkey_id,
    name: row.name,
    backedUp: row.backed_up === 1,
    createdAt: iso(row.created_ms),
    ...(row.last_used_ms !== null && { lastUsedAt: iso(row.last_used_ms) }),
  }
}
