import type { Call } from '../../operations/operation.ts'
import type { ProtectedItemRow } from '../../persistence/tables/protection.ts'
import type { PurchaseRow, PurchaseUnitRow } from '../../persistence/tables/purchases.ts'
import { findAuthorization } from './authorizations.ts'
import { denyRights } from '../rights/deny-list.ts'
import { mayBeHonoured, revokeAuthorization } from './leases.ts'
import { findRight, storeReturned, useRight, viewRight, type UnitKey } from '../rights/rights.ts'
import { settlePurchases } from '../rights/settle-purchase.ts'

const GUARD_SECONDS = 60

/**
 * True if the item belongs to this unit. If an item was returned and sold again, its former unit still names the item.
 */
export function isItemOf(
  item: Pick<ProtectedItemRow, 'line_id' | 'unit_no'>,
  unit: Pick<PurchaseUnitRow, 'line_id' | 'unit_no'>,
): boolean {
  return item.line_id === unit.line_id && item.unit_no === unit.unit_no
}

/**
 * Revokes the leases of returned goods and marks their rights used, so that no receipt releases them (ADR 0008). `by`:
 * id of the refund or item move.
 */
export async function returnUnits(
  call: Call,
  purchase: PurchaseRow,
  units: readonly { line_id: string; unit_no: number }[],
  by: string,
): Promise<void> {
  const { db, nowMs } = call
  const keys = units.map((unit) => ({ lineId: unit.line_id, unitNo: unit.unit_no }))
  for (const rightClass of ['release', 'exit'] as const) {
    for (const key of keys) {
      const right: UnitKey = { ...key, rightClass, purchaseId: purchase.purchase_id }
      await revokeLease(call, right, 'its goods were returned')
      const row = await findRight(db, right)
      if (viewRight(row, nowMs).state !== 'used')
        await useRight(db, right, { nonce: by, deviceId: '', redemptionId: by }, row?.failures ?? 0)
      await storeReturned(db, right, by)
    }
    if (purchase.receipt_exp !== null)
      await denyRights(call, purchase, rightClass, keys, purchase.receipt_exp + GUARD_SECONDS)
  }
  await settlePurchases(call, [purchase.purchase_id])
}

/**
 * Revokes the authorization that leases this right. If the authorization leases further rights, devices must request
 * these again.
 */
export async function revokeLease(call: Call, right: UnitKey, reason: string): Promise<void> {
  const row = await findRight(call.db, right)
  const lease = row?.state === 'leased' && row.nonce !== null ? await findAuthorization(call.db, row.nonce) : undefined
  if (lease && mayBeHonoured(lease, call.nowMs)) await revokeAuthorization(call, lease, reason)
}
