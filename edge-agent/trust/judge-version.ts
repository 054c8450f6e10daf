import { compareVersions, contentHash, type DocumentVersion } from '../../policy/documents/store-documents.ts'
import { refused, type Acceptance } from './verify/open-claims.ts'

/** A version with the hash of its content. */
export type DocumentHead = DocumentVersion & { hash: string }

/** Result for a document that the agent already has. */
export const KNOWN = { taken: false, why: 'known' } as const

/**
 * Returns undefined if the version is newer than `have`, the held version. Returns `known` for the held version with
 * the same content. Otherwise returns a refusal. `named`: the version that the freshness names.
 */
export function judgeVersion(
  kind: 'keys' | 'policy',
  claims: DocumentVersion & { iat: number; exp: number },
  have: DocumentHead | undefined,
  named: DocumentHead | undefined,
): Extract<Acceptance, { taken: false }> | undefined {
  const hash = contentHash(claims)
  // The freshness contains the hash of each version. So the agent rejects the same version with other content, such
  // as from a restored cloud.
  if (named && compareVersions(claims, named) === 0 && hash !== named.hash)
    return refused(`${kind} ${claims.epoch}.${claims.ver} is not the version that the freshness names`)
  if (!have) return undefined
  const order = compareVersions(claims, have)
  if (order > 0) return undefined
  if (order < 0)
    return {
      ...refused(`${kind} ${claims.epoch}.${claims.ver} is older than ${have.epoch}.${have.ver}`),
      isOlderThan: kind,
    }
  return hash === have.hash ? KNOWN : refused(`${kind} ${claims.ver} has different content than the held one`)
}
