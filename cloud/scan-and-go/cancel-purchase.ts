import { countCancelled } from '../analytics/count-purchases.ts'
import { precondition } from '../operations/failure.ts'
import { reverseEarnings } from '../loyalty/earn-automatically.ts'
import type { Call } from '../operations/operation.ts'
import type { PurchaseRow } from '../persistence/tables/purchases.ts'
import { refundWhole, releaseRefund } from '../payments/refunds.ts'
import { denyReceipt } from '../protection/deny-list.ts'
import { raiseException } from '../protection/events.ts'
import { readItem, updateItem } from '../protection/item-queries.ts'
import { tellGates } from '../protection/item-sequence.ts'
import { revoke } from '../protection/leases.ts'
import { hasAgents } from '../protection/receipt-rights.ts'
import { endUnpaid } from './end-unpaid.ts'
import { readLines, readUnits, updatePurchase } from './queries.ts'
import { viewRight, findRight } from '../protection/rights.ts'

/**
 * Takes a purchase back (decisions §8). Nothing is authorized from then on; of a paid one the
 * authorizations are revoked first, and money goes back only when no token can be used any more.
 */
export async function cancelPurchase(call: Call, purchase: PurchaseRow, reason: string | undefined): Promise<PurchaseRow> {
  const change = { status: 'CANCELLED', cancel_reason: reason ?? null }
  if (purchase.status === 'PENDING_PAYMENT' || purchase.status === 'CREATED') return endUnpaid(call.db, purchase, change)
  if (purchase.status === 'CANCELLED' && purchase.refund_status === 'failed') return updatePurchase(call.db, purchase, { refund_status: 'pending' })
  if (purchase.status !== 'SUCCESS') {
    throw precondition('purchase_not_cancellable', `a purchase that is ${purchase.status} cannot be cancelled`, { allowedNext: [] })
  }
  await revokeAll(call, purchase)
  const denySeq = await denyReceipt(call, purchase)
  await takeBackItems(call, purchase)
  tellGates(call, purchase.store_id)
  // Repeated after a refund that failed, it was counted before.
  if (purchase.refund_status !== 'failed') await countCancelled(call, purchase, await readLines(call.db, purchase.purchase_id))
  const { tenant, purchase_id: transactionId, total_cent: totalCent } = purchase
  await reverseEarnings(call, { tenant, transactionId, remainingCent: 0, totalCent })
  const isOpen = await hasOpenAuthorizations(call, purchase)
  const refund = await refundWhole(call, { ...purchase, ...change }, isOpen ? 'held' : 'due')
  return updatePurchase(call.db, purchase, { ...change, deny_seq: denySeq, refund_status: isOpen || refund ? 'pending' : 'done' })
}

async function authorizationsOf({ db }: Pick<Call, 'db'>, purchaseId: string) {
  return db.selectFrom('protection_authorization').selectAll().where('purchase_id', '=', purchaseId).execute()
}

async function revokeAll(call: Call, purchase: PurchaseRow): Promise<void> {
  for (const row of await authorizationsOf(call, purchase.purchase_id)) {
    if (row.exp * 1_000 > call.nowMs) await revoke(call, row, 'the purchase was cancelled')
  }
}

/** Goods that are still here become sellable again by hand; released ones are held, never silently sellable. */
async function takeBackItems(call: Call, purchase: PurchaseRow): Promise<void> {
  const { db, nowMs, services } = call
  let released = 0
  for (const unit of await readUnits(db, purchase.purchase_id)) {
    const keys = (['release', 'exit'] as const).map((rightClass) => ({
      lineId: unit.line_id,
      unitNo: unit.unit_no,
      rightClass,
      purchaseId: purchase.purchase_id,
    }))
    const rights = await Promise.all(keys.map((key) => findRight(db, key)))
    const isReleased = rights.some((row) => row?.state === 'used' || viewRight(row, nowMs).state === 'used')
    if (isReleased) released++
    if (unit.bound === 0 || unit.item_id === null) continue
    const item = await readItem(db, unit.item_id)
    if (item.item_status === 'paid') await updateItem(db, item, { item_status: isReleased ? 'exception_hold' : 'cancelled' }, nowMs)
  }
  if (released === 0) return
  await raiseException(
    { db, tenant: purchase.tenant, platform: services.platform, nowMs },
    {
      storeId: purchase.store_id,
      kind: 'cancelled_after_release',
      subject: purchase.purchase_id,
      purchaseId: purchase.purchase_id,
      detail: `the purchase was cancelled after ${released} of its units had been released`,
    },
  )
}

/** Whether somebody may still hold a token, or a home has not taken the denial yet. */
async function hasOpenAuthorizations(call: Call, purchase: PurchaseRow): Promise<boolean> {
  if (await hasAgents(call.db, purchase.store_id)) return true
  return (await authorizationsOf(call, purchase.purchase_id)).some((row) => row.agent_id !== null && row.exp * 1_000 > call.nowMs)
}

/** The refunds that have waited long enough: every token of the purchase has ended, and so has what a home may still accept. */
export async function settleRefunds({ db, nowMs }: Pick<Call, 'db' | 'nowMs'>): Promise<void> {
  const sent = db.selectFrom('refund').select('purchase_id').where('kind', '=', 'whole').where('state', '=', 'due')
  const waiting = await db.selectFrom('purchase').selectAll().where('refund_status', '=', 'pending').where('purchase_id', 'not in', sent).limit(100).execute()
  for (const purchase of waiting) {
    const rows = await authorizationsOf({ db }, purchase.purchase_id)
    const isOver = rows.every((row) => row.voided_ms !== null || row.exp * 1_000 + 60_000 <= nowMs)
    if (!isOver || !(await denialTaken(db, purchase))) continue
    // Where a provider was paid, it is done when the provider has taken the refund.
    if (!(await releaseRefund({ db, nowMs }, purchase))) await updatePurchase(db, purchase, { refund_status: 'done' })
  }
}

/** Every agent of the store has taken the list of denials up to the one of this receipt. */
async function denialTaken(db: Call['db'], purchase: PurchaseRow): Promise<boolean> {
  const agents = await db.selectFrom('agent').select('deny_seq').where('store_id', '=', purchase.store_id).where('revoked_ms', 'is', null).execute()
  return agents.every((agent) => agent.deny_seq >= (purchase.deny_seq ?? 0))
}
