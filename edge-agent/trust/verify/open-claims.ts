import { decodeProtectedHeader } from 'jose'
import type { DocumentKind } from '../../../policy/documents/kinds.ts'
import type { KeyRing } from '../../../policy/documents/keys.ts'
import { openDocument } from '../../../policy/documents/signed-document.ts'
import { UNTAG_VERSION } from '../../../policy/version.ts'
import { requiredReleaseOf, type RequiredRelease } from './required-release.ts'

/**
 *   document ─▶ signature, kind, audience, times ─▶ needs a later release? ─▶ schema of the claims ─▶ claims, or a refusal
 *
 * How documents are opened before anybody asks whether they are newer.
 */

/** The kind that a document claims to be; nothing is believed by it but which way to check. */
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

/** Something is wrong with a document: to be reported. */
export interface Refusal {
  taken: false
  why: 'refused'
  detail: string
  /** It is for agents of a later release. */
  requiredRelease?: RequiredRelease
}

/** What became of a document that an agent was shown. */
export type Acceptance =
  | { taken: true; kind: 'keys' | 'policy' | 'fresh' | 'deny' | 'items' | 'time' }
  /** Known already, or not newer: nothing to say. */
  | { taken: false; why: 'known' }
  /** `isDoubted`: a time that a second one may confirm. */
  | (Refusal & { isDoubted?: true })

/** What an agent answers to a document that it does not take, with the reason. */
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
  // Before the schema: what a later release has signed need not fit ours.
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

/** A document that was accepted before is kept, however old it is. */
export function openStoredClaims<T extends object>(
  jws: string,
  kind: DocumentKind,
  keys: KeyRing,
  audience: string,
  schema: Schema<T>,
): T | undefined {
  const opened = openDocument<T>(jws, kind, { keys, audience })
  // Also by a release that was put back to an earlier one, as long as that can read it.
  return opened.ok && schema.safeParse(opened.claims).success ? (opened.claims as T) : undefined
}

/** What was accepted while its key still counted is kept when that has retired; only a revoked key takes it along. */
export function withRetiredKeys(keys: KeyRing): KeyRing {
  return new Map(
    [...keys].map(([kid, key]) => [kid, key.state === 'retired' ? { ...key, state: 'retiring' as const } : key]),
  )
}
