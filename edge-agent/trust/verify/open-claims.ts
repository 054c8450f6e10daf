import { decodeProtectedHeader } from 'jose'
import type { DocumentKind } from '../../../policy/documents/kinds.ts'
import type { KeyRing } from '../../../policy/documents/keys.ts'
import { openDocument } from '../../../policy/documents/signed-document.ts'
import { UNTAG_VERSION } from '../../../policy/version.ts'
import { requiredReleaseOf, type RequiredRelease } from './required-release.ts'

/**
 *   document ─▶ signature, kind, audience, times ─▶ needs a later release? ─▶ schema of the claims ─▶ claims, or a refusal
 *
 * Verifies documents before their versions are compared.
 */

/** Returns the unverified `typ`, which selects the check. */
export function claimedType(jws: string): string {
  try {
    const { typ }: { typ?: unknown } = decodeProtectedHeader(jws)
    return typeof typ === 'string' ? typ : ''
  } catch {
    return ''
  }
}

export interface Schema<T> {
  safeParse(value: unknown): { success: true; data: T } | { success: false }
}

/** A document was refused. The agent reports it. */
export interface Refusal {
  taken: false
  why: 'refused'
  detail: string
  /** Set if the document needs a later release. */
  requiredRelease?: RequiredRelease
}

/** Result of `accept` for one document. */
export type Acceptance =
  | { taken: true; kind: 'keys' | 'policy' | 'fresh' | 'deny' | 'items' | 'time' }
  /** The version is held already or older. */
  | { taken: false; why: 'known' }
  /** `needsConfirmation`: a second signed time may confirm this one. */
  | (Refusal & { needsConfirmation?: true })

/** Creates a refusal with its reason. */
export function refused(detail: string): Refusal {
  return { taken: false, why: 'refused', detail }
}

export type OpenedClaims<T> = { ok: true; claims: T } | { ok: false; refusal: Refusal }

/** Opens a document of this kind and checks its claims. `now` in seconds; undefined: its times are not judged here. */
export function openClaims<T extends object>(
  jws: string,
  kind: DocumentKind,
  keys: KeyRing,
  audience: string,
  schema: Schema<T>,
  now: number | undefined,
): OpenedClaims<T> {
  const opened = openDocument<T>(jws, kind, { keys, audience, ...(now !== undefined && { now }) })
  if (!opened.ok) return { ok: false, refusal: refused(`${kind.typ}: ${opened.fault} (${opened.detail})`) }
  // Before the schema check: claims for a later release need not match this schema.
  const requiredRelease = kind.use === 'policy' ? requiredReleaseOf(opened.claims) : undefined
  if (requiredRelease)
    return {
      ok: false,
      refusal: {
        ...refused(
          `${kind.typ} ${requiredRelease.epoch}.${requiredRelease.ver} needs release ${requiredRelease.release}, this is ${UNTAG_VERSION}`,
        ),
        requiredRelease,
      },
    }
  if (!schema.safeParse(opened.claims).success) return { ok: false, refusal: refused(`${kind.typ}: claims_invalid`) }
  // The claims as signed: hashes are over their own order of fields.
  return { ok: true, claims: opened.claims as T }
}

/** Opens a document that was accepted earlier, whatever its age. Undefined if it no longer verifies. */
export function openStoredClaims<T extends object>(
  jws: string,
  kind: DocumentKind,
  keys: KeyRing,
  audience: string,
  schema: Schema<T>,
): T | undefined {
  const opened = openDocument<T>(jws, kind, { keys, audience })
  // After a downgrade the schema may not match.
  return opened.ok && schema.safeParse(opened.claims).success ? (opened.claims as T) : undefined
}

/** Treats retired keys as retiring, so that stored documents still verify. Revoked keys stay revoked. */
export function withRetiredKeys(keys: KeyRing): KeyRing {
  return new Map(
    [...keys].map(([kid, key]) => [kid, key.state === 'retired' ? { ...key, state: 'retiring' as const } : key]),
  )
}
