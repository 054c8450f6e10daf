import { mergeRedemptions, type UnitRedemption } from '../../../policy/redemption-merge.ts'
import type { Outcome } from '../../../policy/vocabulary.ts'
import type { RedemptionRow } from '../../platform/persistence/tables/protection.ts'
import { LEASE_GUARD_MS, triesOf, type UnitKey } from './rights.ts'
import type { RedemptionBatch } from './redemption-batch.ts'

/** Unit of a redemption; undefined if it used no right. */
export async function unitOf(
  redemptions: Pick<RedemptionBatch, 'right'>,
  { line_id, unit_no, right_class }: RedemptionRow,
): Promise<UnitKey | undefined> {
  if (line_id === null || unit_no === null || right_class === null) return undefined
  const key = { lineId: line_id, unitNo: unit_no, rightClass: right_class as UnitKey['rightClass'] }
  const right = await redemptions.right({ ...key, purchaseId: '' })
  return { ...key, purchaseId: right?.purchase_id ?? '' }
}

/**
 * Updates a unit's right from all its redemptions. If all uses failed or the outcome is unknown, a leased right stays
 * leased. If a use by receipt had replaced the lease, and the lease is unused, the right then gets the lease back. With
 * `leaseEnded`, the right has no lease afterwards.
 *
 * `isDouble` is true if the right was used twice, `isUsed` if it was used at all. `returned` is set if the goods were returned: `unused` if the right
 * has no use or all uses failed, else `used`.
 */
export async function settleRight(
  redemptions: RedemptionBatch,
  key: UnitKey,
  leaseEnded = false,
): Promise<{ isDouble: boolean; isUsed: boolean; returned?: 'used' | 'unused' }> {
  const { effective, failures, isDouble } = mergeRedemptions((await redemptions.ofUnit(key)).map(useOf), key.rightClass)
  const right = await redemptions.right(key)
  const isUsed = effective !== null
  // Returned goods must not be released again, so an outcome does not change their right.
  if (right && right.returned_by !== null) return { isDouble, isUsed, returned: isUsed ? 'used' : 'unused' }
  const isUnknown = effective?.outcome === 'unknown'
  const isOpen = effective === null || isUnknown
  if (right?.state === 'leased' && !leaseEnded && isOpen) {
    const known = triesOf(right)
    const lease = { nonce: right.nonce ?? '', deviceId: right.device_id ?? '', untilMs: right.until_ms ?? 0 }
    if (known.failures !== failures || known.isUnknown !== isUnknown)
      await redemptions.lease(key, lease, { failures, isUnknown })
    return { isDouble, isUsed }
  }
  const lease = right && isOpen && !leaseEnded && key.purchaseId !== '' ? await redemptions.unusedLease(key) : undefined
  if (lease)
    await redemptions.lease(
      key,
      { nonce: lease.nonce, deviceId: lease.device_id, untilMs: lease.exp * 1_000 + LEASE_GUARD_MS },
      { failures, isUnknown },
    )
  else if (effective) {
    const isSame =
      right?.state === 'used' &&
      right.redemption_id === effective.redemptionId &&
      right.nonce === effective.nonce &&
      right.failures === failures
    const known = isSame ? right.outcome : null
    if (!isSame) await redemptions.use(key, effective, failures)
    if (effective.outcome !== null && effective.outcome !== known)
      await redemptions.storeOutcome(effective.redemptionId, key, effective.outcome)
  } else if (right) await redemptions.free(key, failures)
  return { isDouble, isUsed }
}

function useOf(row: RedemptionRow): UnitRedemption {
  return {
    redemptionId: row.redemption_id,
    nonce: row.nonce,
    source: row.source as UnitRedemption['source'],
    deviceId: row.device_id,
    atMs: row.at_ms,
    outcome: row.outcome as Outcome | null,
  }
}
