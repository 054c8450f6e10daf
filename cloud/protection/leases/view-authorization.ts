import { deriveAuthorizationState, type DerivedAuthorizationState } from '../../../policy/authorization-state.ts'
import type { ProtectionAuthorizationRow, RedemptionRow } from '../../platform/persistence/tables/protection.ts'

/** State of an authorization from its row and redemptions. */
export function viewAuthorization(
  row: ProtectionAuthorizationRow,
  redemptions: readonly RedemptionRow[],
  nowMs: number,
): DerivedAuthorizationState {
  return deriveAuthorizationState(
    {
      expMs: row.exp * 1_000,
      revokedAtMs: row.revoked_ms ?? undefined,
      evidence: redemptions.map((r) => ({ redemptionId: r.redemption_id, step: r.step, atMs: r.at_ms })),
    },
    nowMs,
  )
}
