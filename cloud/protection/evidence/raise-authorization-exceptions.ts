import type { ProtectionAuthorizationRow } from '../../platform/persistence/tables/protection.ts'
import { redemptionsOf } from '../leases/authorizations.ts'
import { viewAuthorization } from '../leases/view-authorization.ts'
import { raiseException } from '../records/exceptions.ts'
import type { EvidenceScope } from './evidence-scope.ts'

/** Raises each exception that the evidence about an authorization shows. Returns their kinds. */
export async function raiseAuthorizationExceptions(
  scope: EvidenceScope,
  row: ProtectionAuthorizationRow,
): Promise<ReadonlySet<string>> {
  await scope.redemptions.flush()
  const redemptions = await redemptionsOf(scope.db, row.nonce)
  const { exceptions } = viewAuthorization(row, redemptions, scope.nowMs)
  for (const kind of exceptions) {
    await raiseException(scope, {
      storeId: row.store_id,
      kind,
      subject: row.nonce,
      detail: EXCEPTION_TEXT[kind],
      deviceId: row.device_id,
      purchaseId: row.purchase_id ?? undefined,
      nonce: row.nonce,
    })
  }
  return exceptions
}

const EXCEPTION_TEXT = {
  double_redeem: 'one step of an authorization was redeemed twice',
  late_redeem: 'an authorization was redeemed after it expired',
  redeemed_after_revocation: 'an authorization was redeemed after it was revoked',
}
