import { RIGHT_CLASSES } from '../../../policy/vocabulary.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { ProtectedItemRow } from '../../platform/persistence/tables/protection.ts'
import type { PurchaseRow, PurchaseUnitRow } from '../../platform/persistence/tables/purchases.ts'
import { findAuthorization, redemptionsOf } from './authorizations.ts'
import { denyRights } from '../rights/deny-list.ts'
import { mayBeHonoured, revokeAuthorization } from './leases.ts'
import { allRightsOf, findRight, rightName, storeReturned, type UnitKey } from '../rights/rights.ts'
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
 * Revokes the leases of returned goods and marks their rights used, so that no receipt releases them (ADR sales). `by`:
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
  const { purchase_id: purchaseId } = purchase
  const rights = RIGHT_CLASSES.flatMap((rightClass) => keys.map((key): UnitKey => ({ ...key, rightClass, purchaseId })))
  const before = await allRightsOf(db, purchaseId)
  const leases = rights.flatMap((key) => {
    const row = before.get(rightName(key))
    return row?.state === 'leased' && row.nonce !== null ? [row.nonce] : []
  })
  for (const nonce of new Set(leases)) await revokeLeaseOf(call, nonce, 'its goods were returned')
  const stored = leases.length > 0 ? await allRightsOf(db, purchaseId) : before
  const known = rights.map((key) => ({ key, row: stored.get(rightName(key)) }))
  await storeReturned(db, known, by, nowMs)
  for (const rightClass of RIGHT_CLASSES)
    if (purchase.receipt_exp !== null)
      await denyRights(call, purchase, rightClass, keys, purchase.receipt_exp + GUARD_SECONDS)
  await settlePurchases(call, [purchase.purchase_id])
}

/** Revokes the unused tokens for an item. The unit of such a token may be bound to the item only when it is released. */
export async function revokeTokensOf(call: Call, itemId: string, reason: string): Promise<void> {
  await revokeUnused(call, (tokens) => tokens.where('item_id', '=', itemId), reason)
}

/**
 * Revokes the unused tokens that open this locker. They name no goods: the goods of one order wait there, so the tokens
 * end when the order leaves the locker.
 */
export async function revokeTokensOfLocker(call: Call, deviceId: string, reason: string): Promise<void> {
  const ofLocker = (tokens: Tokens) =>
    tokens.where('device_id', '=', deviceId).where('item_id', 'is', null).where('purchase_id', 'is', null)
  await revokeUnused(call, ofLocker, reason)
}

/** Revokes the unused tokens that this operator approved in the store. */
export async function revokeTokensOfOperator(call: Call, storeId: string, operatorId: string): Promise<void> {
  const approved = (tokens: Tokens) => tokens.where('store_id', '=', storeId).where('operator_id', '=', operatorId)
  await revokeUnused(call, approved, 'its operator was removed')
}

const liveTokens = (call: Call) =>
  call.db
    .selectFrom('protection_authorization')
    .selectAll()
    .where('revoked_ms', 'is', null)
    .where('exp', '>', Math.floor(call.nowMs / 1_000) - GUARD_SECONDS)
type Tokens = ReturnType<typeof liveTokens>

async function revokeUnused(call: Call, chosen: (tokens: Tokens) => Tokens, reason: string): Promise<void> {
  for (const row of await chosen(liveTokens(call)).execute())
    if ((await redemptionsOf(call.db, row.nonce)).length < row.count) await revokeAuthorization(call, row, reason)
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
