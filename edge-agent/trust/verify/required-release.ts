import { compareVersions, type DocumentVersion } from '../../../policy/documents/store-documents.ts'
import { isOlderVersion, VersionNumber, UNTAG_VERSION } from '../../../policy/version.ts'
import type { Ledger } from '../../ledger/ledger.ts'

/**
 * A policy may require a later release of the agent (`minAgent`). An older agent refuses and reports that policy, and
 * continues with its last policy.
 */
export interface RequiredRelease extends DocumentVersion {
  release: string
}

const REQUIRED_RELEASE = 'needed_release'

type MetadataStore = Pick<Ledger, 'metadata' | 'commits'>

/**
 * Returns the required release if this agent is too old. Reads only the version claims, because a later release may
 * change all other claims.
 */
export function requiredReleaseOf(claims: object): RequiredRelease | undefined {
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
