import { compareVersions, type FreshClaims } from '../../policy/documents/store-documents.ts'
import type { DocumentHead } from './judge-version.ts'
import { refused, type Refusal } from './verify/open-claims.ts'

/** The documents of this agent that a freshness is compared with. */
export interface LocalVersions {
  head(kind: 'keys' | 'policy'): DocumentHead | undefined
  /** Signing time of the document in use, s. Undefined if there is none. */
  signedS(kind: 'keys' | 'policy'): number | undefined
  /** Lowest cloud generation that this agent accepts. */
  readonly lowestGeneration: number
  /** Time epoch of the key set in use. */
  readonly timeEpoch: number
}

/** Maximum time for which two requests to the cloud overlap, s. */
const CONCURRENT_S = 5

/**
 * Returns a refusal if the freshness contradicts the held documents: an older version, different content of the same
 * version, or an unknown time epoch. `outdated`: the agent holds a document that is newer than the freshness. `keys
 * pending`: the freshness needs a newer key set.
 */
export function freshnessConflict(
  fresh: FreshClaims,
  local: LocalVersions,
): Refusal | 'outdated' | 'keys pending' | undefined {
  const { lowestGeneration: generation } = local
  // The generation is too low if a cloud from before the restore still runs, or if two clouds were restored from one
  // backup.
  if (fresh.cloudGeneration < generation)
    return refused(
      `the freshness is from before the restore of the cloud (generation ${fresh.cloudGeneration}, not ${generation})`,
    )
  for (const kind of ['keys', 'policy'] as const) {
    const [have, named] = [local.head(kind), fresh[kind]]
    if (!have) continue
    const order = compareVersions(named, have)
    const signedS = local.signedS(kind)
    // The cloud signed the freshness before the held document, or at about the same time. So the older version is no
    // rollback.
    if (order < 0 && signedS !== undefined && fresh.timeMs / 1_000 < signedS + CONCURRENT_S) return 'outdated'
    // Only a restored cloud may name older versions; the generation of a restored cloud is higher.
    if (order < 0 && fresh.cloudGeneration <= generation)
      return refused(`the freshness names ${kind} ${named.epoch}.${named.ver}, older than ${have.epoch}.${have.ver}`)
    if (order === 0 && named.hash !== have.hash)
      return refused(`the freshness names different content of ${kind} ${named.epoch}.${named.ver}`)
  }
  return timeEpochConflict(fresh, local)
}

/**
 * Compares time epochs. The agent accepts a later epoch only after a key set has begun it: a thief of a freshness key
 * cannot sign key sets.
 */
function timeEpochConflict(
  { timeEpoch, keys }: FreshClaims,
  { timeEpoch: current, head }: LocalVersions,
): Refusal | 'outdated' | 'keys pending' | undefined {
  if (timeEpoch === current) return undefined
  if (timeEpoch < current) return 'outdated'
  const have = head('keys')
  return have && compareVersions(keys, have) <= 0
    ? refused(`the freshness has time epoch ${timeEpoch}, which no key set of the root opened`)
    : 'keys pending'
}
