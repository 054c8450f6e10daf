import type { Call } from '../../platform/operations/operation.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { prepared } from '../../platform/persistence/prepared.ts'
import type { PurchaseLineRow, PurchaseRow, ShoppingSessionRow } from '../../platform/persistence/tables/purchases.ts'
import { isCoupon } from '../purchases/line-value.ts'
import type { Pieces } from '../purchases/pieces.ts'
import { dayOf } from './days.ts'
import { sharesOf, type TaxShare } from './refund-shares.ts'
import { addToDay, addToVat } from './store-days.ts'

/**
 * Counts scan and go purchases. Reports show the current state: a refund is subtracted from the day of the payment.
 * Closings show events: a refund is added to the day on which it completed.
 */

type EventContext = Pick<Call, 'db' | 'nowMs'>

/** Counts a check-in. */
export async function countSession({ db }: EventContext, session: ShoppingSessionRow): Promise<void> {
  await addToDay(db, session, dayOf(session.created_ms), { sessions: 1 })
}

/** Counts a paid purchase. */
export async function countCompleted(
  { db, nowMs }: EventContext,
  purchase: PurchaseRow,
  lines: readonly PurchaseLineRow[],
): Promise<void> {
  const day = dayOf(nowMs)
  await addToDay(db, purchase, day, {
    completed_checkouts: 1,
    revenue_cent: purchase.total_cent,
    items_scanned: unitsOf(lines),
    receipts: 1,
  })
  for (const { rate, cent, tax } of taxesOf(lines))
    await addToVat(db, purchase, day, rate, { sales_cent: cent, sales_tax_cent: tax })
  await countInSession(db, purchase, 1)
}

/** Figures that a refund subtracts. */
export interface CountedRefund {
  shares: TaxShare[]
  /** Returned pieces of goods, without deposits. */
  units: number
  /** Returned pieces by line. */
  pieces: Pieces[]
  /** True if no part of the purchase remains. */
  isWhole: boolean
}

/**
 * Subtracts a refund from the day of the payment and adds it to today's closing. `sign` -1 reverses a refund that
 * failed later.
 */
export async function countRefund(
  { db, nowMs }: EventContext,
  purchase: PurchaseRow,
  { shares, units, isWhole }: CountedRefund,
  sign: 1 | -1,
): Promise<void> {
  const day = dayOf(nowMs)
  const cent = shares.reduce((sum, share) => sum + share.cent, 0)
  await addToDay(db, purchase, dayOf(purchase.completed_ms ?? nowMs), {
    revenue_cent: -sign * cent,
    items_scanned: -sign * units,
    completed_checkouts: isWhole ? -sign : 0,
  })
  // A refund of 0 cents is not counted. Such a refund ends a purchase whose whole amount was refunded in parts before.
  if (cent > 0) await addToDay(db, purchase, day, { refunds: sign })
  for (const share of shares)
    await addToVat(db, purchase, day, share.rate, { refund_cent: sign * share.cent, refund_tax_cent: sign * share.tax })
  if (isWhole) await countInSession(db, purchase, sign === 1 ? -1 : 1)
}

/** Number of pieces of goods, without deposits and coupons. */
export function unitsOf(
  lines: readonly PurchaseLineRow[],
  quantityOf: (line: PurchaseLineRow) => number = (line) => line.quantity,
): number {
  return lines.reduce((sum, line) => sum + (line.deposit_of === null && !isCoupon(line) ? quantityOf(line) : 0), 0)
}

/** Gross amount and tax by VAT rate, as on the receipt. */
export function taxesOf(lines: readonly PurchaseLineRow[]): TaxShare[] {
  return sharesOf(lines.map((line) => ({ cent: line.price_cent * line.quantity, rate: line.vat })))
}

const addCompleted = prepared((db, p: { sessionId: string; change: number }) =>
  db
    .updateTable('shopping_session')
    .set((eb) => ({ completed: eb('completed', '+', p.change) }))
    .where('session_id', '=', p.sessionId)
    .returning(['completed', 'created_ms']),
)

/** Counts a session once, on the day on which it started, even if it has several purchases. */
async function countInSession(db: Db, purchase: PurchaseRow, change: 1 | -1): Promise<void> {
  const [session] = await addCompleted(db, { sessionId: purchase.session_id, change })
  if (session?.completed !== (change === 1 ? 1 : 0)) return
  await addToDay(db, purchase, dayOf(session.created_ms), { sessions_completed: change })
}
