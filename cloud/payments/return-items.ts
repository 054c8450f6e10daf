import type { Call } from '../operations/operation.ts'
import type { PurchaseRow } from '../persistence/tables/purchases.ts'
import { unitsOfAuthorization } from '../protection/authorizations.ts'
import { denyRights } from '../protection/deny-list.ts'
import { readItem, updateItem } from '../protection/item-queries.ts'
import { tellGates } from '../protection/item-sequence.ts'
import { revoke } from '../protection/leases.ts'
import { findRight, noteOutcome, useRight, viewRight } from '../protection/rights.ts'
import { settlePurchases } from '../protection/settle-purchase.ts'
import { touchSubjects } from '../protection/touch.ts'
import { readUnits } from '../scan-and-go/queries.ts'

const GUARD_SECONDS = 60

/** The items of these lines came back: they are `returned`, and nothing is released for them any more (decisions §8). */
export async function returnItems(call: Call, purchase: PurchaseRow, lineIds: ReadonlySet<string>, refundId: string): Promise<void> {
  const { db, nowMs } = call
  await revokeFor(call, purchase, lineIds)
  const units = (await readUnits(db, purchase.purchase_id)).filter((unit) => lineIds.has(unit.line_id))
  const keys = units.map((unit) => ({ lineId: unit.line_id, unitNo: unit.unit_no }))
  for (const rightClass of ['release', 'exit'] as const) {
    for (const key of keys) {
      const right = { ...key, rightClass, purchaseId: purchase.purchase_id }
      const row = await findRight(db, right)
      if (viewRight(row, nowMs).state === 'used') continue
      await useRight(db, right, { nonce: refundId, deviceId: '', redemptionId: refundId }, row?.failures ?? 0)
      await noteOutcome(db, refundId, right, 'returned')
    }
    if (purchase.receipt_exp !== null) await denyRights(call, purchase, rightClass, keys, purchase.receipt_exp + GUARD_SECONDS)
  }
  await touchSubjects(db, keys.map((key) => ({ ...key, purchaseId: purchase.purchase_id })))
  for (const unit of units) {
    if (unit.bound === 0 || unit.item_id === null) continue
    const item = await readItem(db, unit.item_id)
    if (item.item_status === 'paid' || item.item_status === 'picked_up') await updateItem(db, item, { item_status: 'returned' }, nowMs)
  }
  tellGates(call, purchase.store_id)
  await settlePurchases(call, [purchase.purchase_id])
}

/** Takes back what may still be used for one of these lines; what it covers besides is asked for anew. */
async function revokeFor(call: Call, purchase: PurchaseRow, lineIds: ReadonlySet<string>): Promise<void> {
  const rows = await call.db.selectFrom('protection_authorization').selectAll().where('purchase_id', '=', purchase.purchase_id).execute()
  for (const row of rows) {
    if (row.exp * 1_000 <= call.nowMs || row.revoked_ms !== null) continue
    const units = await unitsOfAuthorization(call.db, row.nonce)
    if (units.some((unit) => lineIds.has(unit.line_id))) await revoke(call, row, 'items of it were refunded')
  }
}
