import { precondition } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { assertOperator } from '../../protection/operators/store-keys.ts'
import { extendReservations } from '../../shop/stock/queries.ts'
import { cancelUnpaidPurchase } from './cancel-purchase.ts'
import { isTest } from '../../shop/purchases/present.ts'
import { updatePurchase } from '../../shop/purchases/queries.ts'
import { sql } from 'kysely'
import type { Randomness } from '../../../policy/platform.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { policyOf } from '../../platform/stores/parsed-policy.ts'

/**
 * Each checkout may be selected at random for a spot check. The check is then due until staff approve a basket.
 * Meanwhile all checkouts of this session and shopper need approval, so that the shopper cannot avoid the check by a
 * new checkout. A repeated checkout is a new random selection, so it may be selected although the first checkout was
 * not.
 */

/** Time for which a spot check stays due for the same shopper in other sessions, ms. */
const DUE_MS = 24 * 3_600_000

/** Contains a literal, because SQLite would not use the partial index with a parameter. */
const IS_DUE = sql<boolean>`spot_check_due = 1`

/** Shopper at a checkout. */
interface Shopper {
  session: Row<'shopping_session'>
  userId: string | null
}

/** True if the basket is selected at random, or if an earlier spot check is still due. */
export async function needsSpotCheck(
  db: Db,
  store: Row<'store'>,
  shopper: Shopper,
  { random, nowMs }: { random: Randomness; nowMs: number },
): Promise<boolean> {
  const { spotCheckRate } = policyOf(store)
  const [a = 0, b = 0, c = 0] = random.bytes(3)
  if (spotCheckRate === 0) return false
  const isPicked = (a * 65_536 + b * 256 + c) / 16_777_216 < spotCheckRate
  const isDue = isPicked || shopper.session.spot_check_due === 1 || (await isDueFor(db, shopper, nowMs))
  // Writes the row even if no check is due, so that concurrent checkouts of a session conflict.
  await db
    .updateTable('shopping_session')
    .set({ spot_check_due: isDue ? 1 : 0 })
    .where('session_id', '=', shopper.session.session_id)
    .execute()
  return isDue
}

async function isDueFor(db: Db, { session, userId }: Shopper, nowMs: number): Promise<boolean> {
  if (userId === null) return false
  const due = await dueOf(db, session.tenant, session.store_id, userId)
    .where('created_ms', '>', nowMs - DUE_MS)
    .limit(1)
    .execute()
  return due.length > 0
}

/** Ends the due spot checks of this shopper after staff approved a basket. */
async function clearSpotCheck(
  db: Db,
  { tenant, store_id: storeId, session_id: sessionId, user_id: userId }: Row<'purchase'>,
): Promise<void> {
  const others = userId === null ? [] : await dueOf(db, tenant, storeId, userId).execute()
  const sessionIds = [sessionId, ...others.map((session) => session.session_id)]
  await db
    .updateTable('shopping_session')
    .set({ spot_check_due: 0 })
    .where('session_id', 'in', sessionIds)
    .where(IS_DUE)
    .execute()
}

function dueOf(db: Db, tenant: string, storeId: string, userId: string) {
  const due = db.selectFrom('shopping_session').select('session_id').where(IS_DUE)
  return due.where('tenant', '=', tenant).where('user_id', '=', userId).where('store_id', '=', storeId)
}

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
export function stockReservedUntil({ approval }: Pick<Row<'purchase'>, 'approval'>, nowMs: number): number {
  return nowMs + (approval === 'awaiting' ? STOCK_AWAITING_MS : STOCK_MS)
}

type ApprovalReason = NonNullable<Row<'purchase'>['approval_reason']>

/** Reason why staff must approve the basket: age check or spot check. Null if no approval is necessary. */
export async function approvalNeeded(
  { db, nowMs, services }: Call,
  lines: readonly { requiresHumanVerification: boolean }[],
  store: Row<'store'>,
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
): Pick<Row<'purchase'>, 'status' | 'approval' | 'approval_reason' | 'payment_by_ms'> {
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
export async function settleApproval(
  call: Call,
  purchase: Row<'purchase'>,
  operatorId: string,
  isApproved: boolean,
): Promise<Row<'purchase'>> {
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
