import type { ProtectionAuthorizationRow } from '../../platform/persistence/tables/protection.ts'
import { findAuthorization } from '../leases/authorizations.ts'
import { freeUnusedRights, recallLease } from '../leases/leases.ts'
import type { UnitKey } from '../rights/rights.ts'
import type { EvidenceScope } from './evidence-scope.ts'

/**
 * Recalls the lease of a unit after a claim or a delegation used the unit's right. `by`: nonce of the token or receipt
 * that was used. `exceptOf`: agent that keeps its lease.
 */
export async function endLease(scope: EvidenceScope, key: UnitKey, by: string, exceptOf?: string): Promise<void> {
  const right = await scope.redemptions.right(key)
  if (right?.state !== 'leased' || right.nonce === null || right.nonce === by) return
  const lease = await findAuthorization(scope.db, right.nonce)
  if (!lease || (exceptOf !== undefined && lease.agent_id === exceptOf)) return
  await flushAndReset(scope)
  await recallLease(scope, lease)
}

/** Frees the rights that an authorization still leases. Call it when no agent or device can honour the token. */
export async function freeLeases(scope: EvidenceScope, row: ProtectionAuthorizationRow): Promise<void> {
  await flushAndReset(scope)
  await freeUnusedRights(scope, row)
}

/** Writes the batch and clears its cache. Call it before other code changes rights in the database directly. */
async function flushAndReset({ redemptions }: EvidenceScope): Promise<void> {
  await redemptions.flush()
  redemptions.reset()
}
