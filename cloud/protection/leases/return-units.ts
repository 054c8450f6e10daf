import { RIGHT_CLASSES } from '../../../policy/vocabulary.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { findAuthorization } from './authorizations.ts'
import { denyRights } from '../rights/deny-list.ts'
import { mayBeHonoured, revokeAuthorization } from './leases.ts'
import { findRight, passOf, rightName, rightsOfUnits, storeReturned, type UnitKey } from '../rights/rights.ts'
import { settlePurchases } from '../rights/settle-purchase.ts'

const GUARD_SECONDS = 60

/**
 * True if the item belongs to this unit. If an item was returned and sold again, its former unit still names the item.
 */
export function isItemOf(
  item: Pick<Row<'protected_item'>, 'line_id' | 'unit_no'>,
  unit: Pick<Row<'purchase_unit'>, 'line_id' | 'unit_no'>,
): boolean {
  return item.line_id === unit.line_id && item.unit_no === unit.unit_no
}

/** The receipt itself, as a unit whose right to open a barrier ends. */
export function passUnitOf({ purchase_id: purchaseId }: Pick<Row<'purchase'>, 'purchase_id'>): {
  line_id: string
  unit_no: number
} {
  const { lineId, unitNo } = passOf(purchaseId)
  return { line_id: lineId, unit_no: unitNo }
}

/**
 * Revokes the leases of returned goods and marks their rights used, so that no receipt releases them (ADR sales). `by`:
 * id of the refund or item move.
 */
export async function returnUnits(
  call: Call,
  purchase: Row<'purchase'>,
  units: readonly { line_id: string; unit_no: number }[],
  by: string,
): Promise<void> {
  const { db, nowMs } = call
  const keys = units.map((unit) => ({ lineId: unit.line_id, unitNo: unit.unit_no }))
  const { purchase_id: purchaseId } = purchase
  const rights = RIGHT_CLASSES.flatMap((rightClass) => keys.map((key): UnitKey => ({ ...key, rightClass, purchaseId })))
  const before = await rightsOfUnits(db, purchaseId, keys)
  const leases = rights.flatMap((key) => {
    const row = before.get(rightName(key))
    return row?.state === 'leased' && row.nonce !== null ? [row.nonce] : []
  })
  for (const nonce of new Set(leases)) await revokeLeaseOf(call, nonce, 'its goods were returned')
  const stored = leases.length > 0 ? await rightsOfUnits(db, purchaseId, keys) : before
  const known = rights.map((key) => ({ key, row: stored.get(rightName(key)) }))
  await storeReturned(db, known, by, nowMs)
  for (const rightClass of RIGHT_CLASSES)
    if (purchase.receipt_exp !== null)
      await denyRights(call, purchase, rightClass, keys, purchase.receipt_exp + GUARD_SECONDS)
  await settlePurchases(call, [purchase.purchase_id])
}

/**
 * Revokes the authorization that leases this right. If the authorization leases further rights, devices must request
 * these again.
 */
export async function revokeLease(call: Call, right: UnitKey, reason: string): Promise<void> {
  const row = await findRight(call.db, right)
  if (row?.state === 'leased' && row.nonce !== null) await revokeLeaseOf(call, row.nonce, reason)
}

async function revokeLeaseOf(call: Call, nonce: string, reason: string): Promise<void> {
  const lease = await findAuthorization(call.db, nonce)
  if (lease && mayBeHonoured(lease, call.nowMs)) await revokeAuthorization(call, lease, reason)
}
