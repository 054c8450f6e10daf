import { decodeProtectedHeader } from 'jose'
import type { DocumentKind } from '../../../policy/documents/kinds.ts'
import { type KeyRing, keyId, keyRing } from '../../../policy/documents/keys.ts'
import { openDocument } from '../../../policy/documents/signed-document.ts'
import { UNTAG_VERSION, isOlderVersion, VersionNumber } from '../../../policy/version.ts'
import { compareVersions, type DocumentVersion } from '../../../policy/documents/store-documents.ts'
import type { Ledger } from '../../ledger/ledger.ts'

/**
 * A policy may require a later release of the agent (`minAgent`). An older agent refuses and reports that policy, and
 * continues with its last policy.
 */
interface RequiredRelease extends DocumentVersion {
  release: string
}

const REQUIRED_RELEASE = 'needed_release'

type MetadataStore = Pick<Ledger, 'metadata' | 'commits'>

/**
 * Returns the required release if this agent is too old. Reads only the version claims, because a later release may
 * change all other claims.
 */
function requiredReleaseOf(claims: object): RequiredRelease | undefined {
  const { minAgent, epoch, ver } = claims as Partial<Record<'minAgent' | 'epoch' | 'ver', unknown>>
  const required = VersionNumber.safeParse(minAgent)
  if (!required.success || !isOlderVersion(UNTAG_VERSION, required.data)) return undefined
  return {
    release: required.data,
    epoch: Number.isSafeInteger(epoch) ? (epoch as number) : 0,
    ver: Number.isSafeInteger(ver) ? (ver as number) : 0,
  }
}

/** Stores the required release, if the policy that requires it is newer than the held policy. */
export function storeRequiredRelease({ metadata, commits }: MetadataStore, needed: RequiredRelease): void {
  const have = metadata.head('policy')
  if ((have && compareVersions(needed, have) <= 0) || metadata.getCached(REQUIRED_RELEASE) === needed.release) return
  commits.now(() => metadata.set(REQUIRED_RELEASE, needed.release))
}

/** Clears the required release after a policy was accepted. */
export function clearRequiredRelease({ metadata, commits }: MetadataStore): void {
  if (metadata.getCached(REQUIRED_RELEASE)) commits.now(() => metadata.set(REQUIRED_RELEASE, ''))
}

/**
 * Returns the release that the newest policy requires. Undefined if the running release (`UNTAG_VERSION`) is new
 * enough.
 */
export function requiredRelease({ metadata }: Pick<MetadataStore, 'metadata'>): string | undefined {
  const release = metadata.getCached(REQUIRED_RELEASE)
  return release && isOlderVersion(UNTAG_VERSION, release) ? release : undefined
}

/** Returns a key ring with only the root key, which verifies key sets. */
export function rootRing({ rootX }: { rootX: string }): KeyRing {
  return keyRing([{ kid: keyId(rootX), alg: 'EdDSA', x: rootX, use: 'root', iss: 'root', state: 'active' }])
}

/**
 * Verifies signature, kind, audience, times and claims of documents. The callers then compare the versions.
 */

/** Returns the unverified `typ`. The `typ` only selects the function that verifies the document. */
export function claimedType(jws: string): string {
  try {
    const { typ }: { typ?: unknown } = decodeProtectedHeader(jws)
    return typeof typ === 'string' ? typ : ''
  } catch {
    return ''
  }
}

interface Schema<T> {
  safeParse(value: unknown): { success: true; data: T } | { success: false }
}

/** Result for a refused document. The agent reports the refusal. */
export interface Refusal {
  taken: false
  why: 'refused'
  detail: string
  /** Set if the agent holds a newer version of this kind. */
  isOlderThan?: 'keys' | 'policy'
  /** Set if the document needs a later release of the agent. */
  requiredRelease?: RequiredRelease
}

/** Result of `accept` for one document. */
export type Acceptance =
  | { taken: true; kind: 'keys' | 'policy' | 'fresh' | 'deny' | 'items' | 'time' }
  /** The agent already has the document or a newer one. */
  | { taken: false; why: 'known' }
  /** `needsConfirmation`: a second signed time may confirm the refused time. */
  | (Refusal & { needsConfirmation?: true })

/** Creates a refusal with its reason. */
export function refused(detail: string): Refusal {
  return { taken: false, why: 'refused', detail }
}

type OpenedClaims<T> = { ok: true; claims: T } | { ok: false; refusal: Refusal }

/**
 * Verifies a document of this kind and returns its claims. `now`: time for the check of the document's times, s. If
 * undefined, the times are not checked.
 */
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
  // This check comes before the schema check, because a policy for a later release may have another schema.
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
  // Returns the claims as signed, not as parsed, because content hashes depend on the order of the fields.
  return { ok: true, claims: opened.claims as T }
}

/** Verifies a stored document, but does not check its times. Returns undefined if the check fails. */
export function openStoredClaims<T extends object>(
  jws: string,
  kind: DocumentKind,
  keys: KeyRing,
  audience: string,
  schema: Schema<T>,
): T | undefined {
  const opened = openDocument<T>(jws, kind, { keys, audience })
  // After a downgrade of the agent the claims may not match the schema.
  return opened.ok && schema.safeParse(opened.claims).success ? (opened.claims as T) : undefined
}

/**
 * Returns the keys with `retiring` in place of `retired`, so that stored documents still verify. Revoked keys stay
 * revoked.
 */
export function withRetiredKeys(keys: KeyRing): KeyRing {
  return new Map(
    [...keys].map(([kid, key]) => [kid, key.state === 'retired' ? { ...key, state: 'retiring' as const } : key]),
  )
}
