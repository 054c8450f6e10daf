import type { EvidenceScope } from './evidence-scope.ts'
import { acknowledgeOpenException, raiseException, WITHDRAWN } from '../records/exceptions.ts'
import { holdReturnedItem, wasStopped } from './hold-late-releases.ts'
import type { UnitKey } from '../rights/rights.ts'
import { settleRight } from '../rights/settle-right.ts'

/** Exceptions about one unit. The cloud withdraws these exceptions if a redemption turns out to have failed. */
const UNIT_EXCEPTIONS = {
  double_redeem: 'one unit was released twice',
  released_after_refund: 'a unit was released after its refund or return',
  released_on_hold: 'a unit was released while its item was on hold, recalled, reserved or in transit',
}

/**
 * Updates a unit's right from all its redemptions, and raises or withdraws exceptions. `claim` is the new claim;
 * undefined if only an outcome changed.
 */
export async function settleUnit(
  scope: EvidenceScope,
  storeId: string,
  key: UnitKey,
  claim: { deviceId: string; atMs: number } | undefined,
): Promise<void> {
  const { isDouble, isUsed, returned } = await settleRight(scope.redemptions, key)
  const subject = `${key.lineId}/${key.unitNo}/${key.rightClass}`
  const raise = (kind: keyof typeof UNIT_EXCEPTIONS) =>
    raiseException(scope, {
      storeId,
      kind,
      subject,
      detail: UNIT_EXCEPTIONS[kind],
      deviceId: claim?.deviceId,
      purchaseId: key.purchaseId === '' ? undefined : key.purchaseId,
    })
  const withdraw = (kind: keyof typeof UNIT_EXCEPTIONS) =>
    acknowledgeOpenException(scope.db, { storeId, kind, subject, by: WITHDRAWN, atMs: scope.nowMs })

  if (isDouble) await raise('double_redeem')
  else if (!claim) await withdraw('double_redeem')
  // Goods that were returned have their own exception.
  if (claim && returned === undefined && (await wasStopped(scope, key, claim.atMs))) await raise('released_on_hold')
  else if (!claim && !isUsed) await withdraw('released_on_hold')
  // If the unit was released before its return, `returned` is also `used`. Such a release is allowed, so only a new
  // claim raises the exception.
  if (returned === 'used' && claim) {
    await holdReturnedItem(scope, storeId, key)
    await raise('released_after_refund')
  } else if (returned === 'unused' && !claim) await withdraw('released_after_refund')
}
