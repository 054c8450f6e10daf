import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { keyId, keyRing } from '../../policy/documents/keys.ts'
import { KeySetClaims, PolicyClaims } from '../../policy/documents/store-documents.ts'
import type { Marks } from '../ledger/file/marks.ts'
import type { Identity } from '../identity/identity.ts'
import { openStored, stillVerifying } from './verify/open-as.ts'

/**
 * The policy that an agent accepted last, for programs that work beside it. Undefined before the first, and if its
 * signature does not hold. Decisions use `openTrust`, which also knows revoked keys.
 */
export function storedPolicy(
  { rootX, tenant, storeId }: Pick<Identity, 'rootX' | 'tenant' | 'storeId'>,
  marks: Pick<Marks, 'document'>,
): PolicyClaims | undefined {
  const root = keyRing([{ kid: keyId(rootX), alg: 'EdDSA', x: rootX, use: 'root', iss: 'root', state: 'active' }])
  const keys = openStored(marks.document('keys')?.jws ?? '', DOCUMENT_KINDS.keys, root, tenant, KeySetClaims)
  if (!keys) return undefined
  const ring = stillVerifying(keyRing(keys.keys))
  return openStored(marks.document('policy')?.jws ?? '', DOCUMENT_KINDS.policy, ring, storeId, PolicyClaims)
}
