import { compareVersions, type DocumentVersion } from '../../../policy/documents/store-documents.ts'
import { isOlderVersion, VersionNumber, UNTAG_VERSION } from '../../../policy/version.ts'
import type { Ledger } from '../../ledger/ledger.ts'

/**
 *   policy with `minAgent` ─ ours is older ─▶ refused, reported, shown        the last good one stays in force
 *                          └ not older ─────▶ judged like every other
 *
 * A policy may need a later release than this one: it says something of which this one knows nothing, or somebody requires it.
 */
export interface RequiredRelease extends DocumentVersion {
  release: string
}

const REQUIRED_RELEASE = 'needed_release'

type MetadataStore = Pick<Ledger, 'metadata' | 'commits'>

/** What these claims need, where this release is too old for them. Nothing else of them is looked at: it may be of a form that is not known here. */
export function requiredReleaseOf(claims: object): RequiredRelease | undefined {
  const { minAgent, epoch, ver } = claims as Partial<Record<'minAgent' | 'epoch' | 'ver', unknown>>
  const asked = VersionNumber.safeParse(minAgent)
  if (!asked.success || !isOlderVersion(UNTAG_VERSION, asked.data)) return undefined
  return {
    release: asked.data,
    epoch: Number.isSafeInteger(epoch) ? (epoch as number) : 0,
    ver: Number.isSafeInteger(ver) ? (ver as number) : 0,
  }
}

/** Keeps that the store's policy needs a later release, over restarts; not of an old copy, for the present policy needs none. */
export function storeRequiredRelease({ metadata, commits }: MetadataStore, needed: RequiredRelease): void {
  const have = metadata.head('policy')
  if ((have && compareVersions(needed, have) <= 0) || metadata.getCached(REQUIRED_RELEASE) === needed.release) return
  commits.now(() => metadata.set(REQUIRED_RELEASE, needed.release))
}

/** A policy was taken: none needs more. */
export function clearRequiredRelease({ metadata, commits }: MetadataStore): void {
  if (metadata.getCached(REQUIRED_RELEASE)) commits.now(() => metadata.set(REQUIRED_RELEASE, ''))
}

/** The release that the store's newest policy needs; undefined: this one is enough. */
export function requiredRelease({ metadata }: Pick<MetadataStore, 'metadata'>): string | undefined {
  const release = metadata.getCached(REQUIRED_RELEASE)
  return release && isOlderVersion(UNTAG_VERSION, release) ? release : undefined
}
