import { hash } from 'node:crypto'
import { z } from 'zod'
import { comparableIdentifier, type IdentifierKind } from '../item-identifiers.ts'
import { secretsEqual } from '../secrets-equal.ts'
import { PROTECTION_ACTIONS, type DenyReason } from '../vocabulary.ts'
import { DOCUMENT_KINDS } from './kinds.ts'
import {
  openDocument,
  signDocument,
  type DocumentErrorCode,
  type DocumentExpectation,
  type Verified,
} from './signed-document.ts'
import type { Signer } from './keys.ts'

/**
 * Value of `led` if the cloud stores the claim: for devices without an agent that work online only, and for agents with
 * an untrusted ledger (ADR signed-documents).
 */
export const CLOUD_LEDGER = 'cloud'

/** Value of `led` if a device without an agent claims the token in its own memory (`supportsOfflineAuth`). */
export const DEVICE_LEDGER = 'device'

/** Claims of an authorization token (ADR signed-documents). The claims contain no customer, price, name or purchase. */
export const AuthorizationClaims = z.strictObject({
  iss: z.string(),
  /** Device that may present the token. */
  aud: z.string(),
  iat: z.number(),
  exp: z.number(),
  /** Nonce: 128 random bits, base64url. */
  jti: z.string().regex(/^[A-Za-z0-9_-]{22}$/),
  /** Ledger that may claim the token: `{ledgerId}.{generation}`, `cloud` or `device`. */
  led: z.string(),
  act: z.enum(PROTECTION_ACTIONS),
  /** Number of units. */
  cnt: z.int().min(1).max(100_000),
  /** Hash of the item, see `itemHash`. Only item-level tokens contain this hash. */
  ith: z
    .string()
    .regex(/^[A-Za-z0-9_-]{16}$/)
    .optional(),
  eid: z.string(),
  rc: z.int().min(0).max(3),
  pv: z.int().min(0),
  kv: z.int().min(0),
})
export type AuthorizationClaims = z.infer<typeof AuthorizationClaims>
type Authorization = Verified<AuthorizationClaims>

export type OpenedAuthorization =
  | { ok: true; authorization: Authorization }
  | { ok: false; fault: DocumentErrorCode; detail: string }

/** Verifies an authorization token: signature, kind, device, times and claims. */
export function openAuthorization(token: string, expected: DocumentExpectation): OpenedAuthorization {
  const opened = openDocument<AuthorizationClaims>(token, DOCUMENT_KINDS.authorization, expected)
  if (!opened.ok) return opened
  const claims = AuthorizationClaims.safeParse(opened.claims)
  if (!claims.success)
    return { ok: false, fault: 'claims_invalid', detail: claims.error.issues[0]?.message ?? 'claims' }
  if (opened.key.iss !== claims.data.iss)
    return { ok: false, fault: 'claims_invalid', detail: 'signed by the key of another issuer' }
  return { ok: true, authorization: opened.claims as Authorization }
}

/** Signs an authorization token: compact JWS, EdDSA (ADR signed-documents). */
export function signAuthorization(claims: AuthorizationClaims, by: Signer): string {
  return signDocument(DOCUMENT_KINDS.authorization, claims, by)
}

/** Deny reason for an invalid token. */
export function denyReasonOf(fault: DocumentErrorCode): Extract<DenyReason, `token_${string}`> {
  if (fault === 'expired') return 'token_expired'
  return fault === 'key_revoked' ? 'token_revoked' : 'token_invalid'
}

/**
 * Hash that binds a token to an item but hides the id of the item. The hash is base64url of the first 12 bytes of
 * SHA-256 over `untag/ith/1`, aud, jti, kind and comparable id, with a zero byte between them.
 */
export function itemHash(aud: string, jti: string, kind: IdentifierKind, id: string): string {
  const text = `untag/ith/1\0${aud}\0${jti}\0${kind}\0${comparableIdentifier(kind, id)}`
  return hash('sha256', text, 'buffer').subarray(0, 12).toString('base64url')
}

/** True if the token is for the item with this identifier. */
export function isForItem(authorization: AuthorizationClaims, kind: IdentifierKind, id: string): boolean {
  return secretsEqual(itemHash(authorization.aud, authorization.jti, kind, id), authorization.ith)
}
