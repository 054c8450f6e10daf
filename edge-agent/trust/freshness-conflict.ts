import { compareVersions, type FreshClaims } from '../../policy/documents/store-documents.ts'
import type { DocumentHead } from './judge-version.ts'
import { refused, type Refusal } from './verify/open-claims.ts'

/** What a freshness is local against. */
export interface LocalVersions {
  head(kind: 'keys' | 'policy'): DocumentHead | undefined
  /** When the one that we use was signed, s; undefined: there is none. */
  signedS(kind: 'keys' | 'policy'): number | undefined
  /** A lower generation is of a cloud as it was before it was restored. */
  readonly lowestGeneration: number
  /** How the key set in use counts time. */
  readonly timeEpoch: number
}

/** One request of the cloud may still look at what another has just changed: it takes so long at most, s. */
const CONCURRENT_S = 5

/**
 * The freshness may name nothing older than what we have, nor another content of the same version, nor count time as the root does not.
 * `overtaken`: it was true, and is old news. `keys on their way`: it is ahead of our key set.
 */
export function freshnessConflict(
  fresh: FreshClaims,
  local: LocalVersions,
): Refusal | 'outdated' | 'keys pending' | undefined {
  const { lowestGeneration: generation } = local
  // Two clouds go on from one backup, or the lost one was not lost.
  if (fresh.cloudGeneration < generation)
    return refused(
      `the freshness is of the cloud as it was before it was restored (generation ${fresh.cloudGeneration}, not ${generation})`,
    )
  for (const kind of ['keys', 'policy'] as const) {
    const [have, named] = [local.head(kind), fresh[kind]]
    if (!have) continue
    const order = compareVersions(named, have)
    const signedS = local.signedS(kind)
    // Made before what we have, or beside it, and overtaken by it on its way: no rollback.
    if (order < 0 && signedS !== undefined && fresh.timeMs / 1_000 < signedS + CONCURRENT_S) return 'outdated'
    // A cloud that was restored from a backup says so, and may know less than we do.
    if (order < 0 && fresh.cloudGeneration <= generation)
      return refused(`the freshness names ${kind} ${named.epoch}.${named.ver}, older than ${have.epoch}.${have.ver}`)
    if (order === 0 && named.hash !== have.hash)
      return refused(`the freshness names another content of ${kind} ${named.epoch}.${named.ver}`)
  }
  return timeEpochConflict(fresh, local)
}

/** Times of a later epoch count only once the root has opened it. */
function timeEpochConflict(
  { timeEpoch, keys }: FreshClaims,
  { timeEpoch: current, head }: LocalVersions,
): Refusal | 'outdated' | 'keys pending' | undefined {
  if (timeEpoch === current) return undefined
  if (timeEpoch < current) return 'outdated'
  const have = head('keys')
  return have && compareVersions(keys, have) <= 0
    ? refused(`the freshness counts time in epoch ${timeEpoch}, which the root has not opened`)
    : 'keys pending'
}
