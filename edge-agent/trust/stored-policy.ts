import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { keyRing } from '../../policy/documents/keys.ts'
import { KeySetClaims, PolicyClaims } from '../../policy/documents/store-documents.ts'
import type { Metadata } from '../ledger/file/metadata.ts'
import type { Identity } from '../identity/identity.ts'
import { openStoredClaims, withRetiredKeys } from './verify/open-claims.ts'
import { rootRing } from './verify/root-ring.ts'

/**
 * Returns the last accepted policy, for command line tools that run in their own process. Undefined before the first
 * policy, or if the signature of the policy is invalid. Decisions use `openTrust`, which also checks revoked keys.
 */
export function storedPolicy(
  identity: Pick<Identity, 'rootX' | 'tenant' | 'storeId'>,
  metadata: Pick<Metadata, 'document'>,
): PolicyClaims | undefined {
  const { tenant, storeId } = identity
  const root = rootRing(identity)
  const keys = openStoredClaims(metadata.document('keys')?.jws ?? '', DOCUMENT_KINDS.keys, root, tenant, KeySetClaims)
  if (!keys) return undefined
  const ring = withRetiredKeys(keyRing(keys.keys))
  return openStoredClaims(metadata.document('policy')?.jws ?? '', DOCUMENT_KINDS.policy, ring, storeId, PolicyClaims)
}
