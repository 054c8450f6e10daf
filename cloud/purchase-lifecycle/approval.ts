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

/** Time to pay, ms. The time starts after staff approval. */
export const PAYMENT_MS = 30 * 60_000

/**
 * Time of the stock reservation of a purchase in payment, ms. This time is longer than the payment time, so that the
 * purchase ends first and releases its stock.
 */
const STOCK_MS = PAYMENT_MS + 5 * 60_000
/** Time of the stock reservation while staff approval is pending, ms. */
const STOCK_AWAITING_MS = 4 * 3_600_000

/** End of the stock reservation of a new purchase, ms since 1970. */
export function stockReservedUntil({ approval }: Pick<PurchaseRow, 'approval'>, nowMs: number): number {
  return nowMs + (approval === 'awaiting' ? STOCK_AWAITING_MS : STOCK_MS)
}

export type ApprovalReason = NonNullable<PurchaseRow['approval_reason']>

/** Reason why staff must approve the basket: age check or spot check. Null if no approval is necessary. */
export async function approvalNeeded(
  { db, nowMs, services }: Call,
  lines: readonly { requiresHumanVerification: boolean }[],
  store: StoreRow,
  shopper: Shopper,
): Promise<ApprovalReason | null> {
  if (lines.some((line) => line.requiresHumanVerification)) return 'age'
  return (await needsSpotCheck(db, store, shopper, { random: services.platform.random, nowMs })) ? 'spot_check' : null
}

/** First state of a purchase. In live mode the purchase becomes PENDING_PAYMENT only when its payment is opened. */
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

/** Records the decision of staff. If staff approve, the payment may start; otherwise the purchase is cancelled. */
export async function decideApproval(
  call: Call,
  purchase: PurchaseRow,
  operatorId: string,
  isApproved: boolean,
): Promise<PurchaseRow> {
  await assertOperator(call, operatorId, purchase.store_id)
  if (purchase.status !== 'CREATED' || purchase.approval !== 'awaiting') {
    throw precondition('not_awaiting_approval', `a purchase with status ${purchase.status} is not awaiting approval`)
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
  // In live mode the purchase becomes PENDING_PAYMENT only when its payment is opened.
  if (!isTest(purchase.tenant)) return updatePurchase(call.db, purchase, change)
  return updatePurchase(call.db, purchase, {
    ...change,
    status: 'PENDING_PAYMENT',
    payment_by_ms: call.nowMs + PAYMENT_MS,
  })
}
