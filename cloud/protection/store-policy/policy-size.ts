import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { policyClaims } from './store-policy.ts'
import { precondition } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import { findStore } from '../../platform/stores/queries.ts'

/** Maximum length of header, signature and dots of a signed document, characters. */
const ENVELOPE = 512
/** Reserve for changes that do not check the size, characters: agents, addresses, keys, moves of the receipt home. */
const RESERVE = 32 * 1024

/**
 * Throws 409 `policy_too_large` if the store's policy is longer than agents accept. Agents would reject that policy and
 * all later ones, and after 80 hours only staff could release goods. Call this check for changes that make the policy
 * longer.
 */
export async function assertPolicyFits(
  { db, services, nowMs }: Pick<Call, 'db' | 'services' | 'nowMs'>,
  storeId: string,
): Promise<void> {
  const store = await findStore(db, storeId)
  if (!store) return
  const claims = await policyClaims(db, store, {
    iat: Math.floor(nowMs / 1_000),
    epoch: services.authority.documentEpoch,
  })
  const bytes = Buffer.byteLength(JSON.stringify(claims))
  const limit = ((DOCUMENT_KINDS.policy.maxLength - ENVELOPE - RESERVE) * 3) / 4
  if (bytes <= limit) return
  throw precondition(
    'policy_too_large',
    `devices, operators and policy of the store would have ${bytes} bytes, and agents accept ${limit}: decommission devices, remove operators, or shorten the policy`,
  )
}
