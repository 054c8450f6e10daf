import { precondition } from '../foundation/failure.ts'
import type { Call } from '../operations/operation.ts'
import type { PurchaseRow } from '../persistence/tables/purchases.ts'
import type { StoreRow } from '../persistence/tables/stores.ts'
import { assertOperator } from '../protection/operators/store-operator.ts'
import { extendReservations } from '../stock/queries.ts'
import { cancelUnpaidPurchase } from './cancel-unpaid-purchase.ts'
import { isTest } from '../purchases/present.ts'
import { updatePurchase } from '../purchases/queries.ts'
import { needsSpotCheck, clearSpotCheck, type Shopper } from './spot-check.ts'

/** How long a payment is awaited, ms; the clock stands still while staff must look first. */
export const PAYMENT_MS = 30 * 60_000

/** How long stock is kept for a payment: a little longer, so that the purchase ends first and frees it itself. */
const STOCK_MS = PAYMENT_MS + 5 * 60_000
/** How long it is kept while staff are awaited: whoever is not looked at by then comes back another day. */
const STOCK_AWAITING_MS = 4 * 3_600_000

/** Until when stock is kept for a new purchase, ms. */
export function stockReservedUntil({ approval }: Pick<PurchaseRow, 'approval'>, nowMs: number): number {
  return nowMs + (approval === 'awaiting' ? STOCK_AWAITING_MS : STOCK_MS)
}

export type ApprovalReason = NonNullable<PurchaseRow['approval_reason']>

/** Why staff must look before this basket is paid: somebody's age, or the store's random check. */
export async function approvalNeeded(
  { db, nowMs, services }: Call,
  lines: readonly { requiresHumanVerification: boolean }[],
  store: StoreRow,
  shopper: Shopper,
): Promise<ApprovalReason | null> {
  if (lines.some((line) => line.requiresHumanVerification)) return 'age'
  return (await needsSpotCheck(db, store, shopper, { random: services.platform.random, nowMs })) ? 'spot_check' : null
}

/** Where a new purchase stands: at its payment, or before it. In live mode the payment must be opened first. */
export function firstState(
  reason: ApprovalReason | null,
  isLive: boolean,
  nowMs: number,
): Pick<PurchaseRow, 'status' | 'approval' | 'approval_reason' | 'payment_by_ms'> {
  if (reason === null)
    return {
      status: isLive ? 'CREATED' : 'PENDING_PAYMENT',
      approval: null,
      approval_reason: null,
      payment_by_ms: nowMs + PAYMENT_MS,
    }
  return { status: 'CREATED', approval: 'awaiting', approval_reason: reason, payment_by_ms: null }
}

/** Staff have looked: the payment may begin, or the purchase is over. */
export async function decideApproval(
  call: Call,
  purchase: PurchaseRow,
  operatorId: string,
  isApproved: boolean,
): Promise<PurchaseRow> {
  await assertOperator(call, operatorId, purchase.store_id)
  if (purchase.status !== 'CREATED' || purchase.approval !== 'awaiting') {
    throw precondition('not_awaiting_approval', `a purchase that is ${purchase.status} awaits no approval`)
  }
  if (!isApproved)
    return cancelUnpaidPurchase(call.db, purchase, {
      approval: 'refused',
      approved_by: operatorId,
      cancel_reason: 'not approved by staff',
    })
  await clearSpotCheck(call.db, purchase)
  await extendReservations(call.db, purchase.purchase_id, call.nowMs + STOCK_MS)
  const change = { approval: 'approved', approved_by: operatorId } as const
  // In live mode the payment is opened next, and the purchase moves on with it.
  if (!isTest(purchase.tenant)) return updatePurchase(call.db, purchase, change)
  return updatePurchase(call.db, purchase, {
    ...change,
    status: 'PENDING_PAYMENT',
    payment_by_ms: call.nowMs + PAYMENT_MS,
  })
}
