import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { policyClaims } from './store-policy.ts'
import { precondition } from '../../foundation/failure.ts'
import type { Call } from '../../operations/operation.ts'
import { findStore } from '../../stores/queries.ts'

/** Upper estimate for header, signature and dots of a signed document, characters. */
const AROUND = 512
/** Reserve for changes without a check, characters: new agents, addresses, next keys, home moves. */
const KEPT_FREE = 32 * 1024

/**
 * Throws 409 `policy_too_large` if the store's policy exceeds what agents accept. They would reject it and all later
 * ones, and after 80 hours only staff could release goods. Call it for changes that make the policy longer.
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
  const most = ((DOCUMENT_KINDS.policy.maxLength - AROUND - KEPT_FREE) * 3) / 4
  if (bytes <= most) return
  throw precondition(
    'policy_too_large',
    `devices, operators and policy of the store would have ${bytes} bytes, and agents accept ${most}: decommission devices, remove operators, or shorten the policy`,
  )
}
