import type { Call } from '../operations/operation.ts'
import type { Db } from '../persistence/database.ts'
import type { PurchaseLineRow, PurchaseRow, ShoppingSessionRow } from '../persistence/tables/purchases.ts'
import { dayOf } from './days.ts'
import { sharesOf, type TaxShare } from './refund-shares.ts'
import { addToDay, addToVat } from './store-days.ts'

/**
 * What a store's day gains by scan and go. Reports tell of purchases as they stand: one that is taken back leaves the day it was
 * paid on, and a part that is refunded leaves it too. Closings tell of what happened: VAT is given back on the day on which the money
 * went back.
 */

type Moment = Pick<Call, 'db' | 'nowMs'>

/** Somebody has checked in. */
export async function countSession({ db }: Moment, session: ShoppingSessionRow): Promise<void> {
  await addToDay(db, session, dayOf(session.created_ms), { sessions: 1 })
}

/** A purchase is paid. */
export async function countCompleted(
  { db, nowMs }: Moment,
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

/** What a refund takes out of the figures. */
export interface CountedRefund {
  shares: TaxShare[]
  /** Units that came back. */
  units: number
  /** The lines that they came back of. */
  lineIds: string[]
  /** The purchase does not stand any more. */
  isWhole: boolean
}

/** Money that went back: out of the day on which it was paid, and into today's closing. -1: it turned out that it did not. */
export async function countRefund(
  { db, nowMs }: Moment,
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
  // What its parts had covered already moves no money.
  if (cent > 0) await addToDay(db, purchase, day, { refunds: sign })
  for (const share of shares)
    await addToVat(db, purchase, day, share.rate, { refund_cent: sign * share.cent, refund_tax_cent: sign * share.tax })
  if (isWhole) await countInSession(db, purchase, sign === 1 ? -1 : 1)
}

/** Pieces of goods: nobody scans a deposit. */
export function unitsOf(lines: readonly PurchaseLineRow[]): number {
  return lines.reduce((sum, line) => sum + (line.deposit_of === null ? line.quantity : 0), 0)
}

/** Gross and tax of each rate, as they stand on the receipt. */
export function taxesOf(lines: readonly PurchaseLineRow[]): TaxShare[] {
  return sharesOf(lines.map((line) => ({ cent: line.price_cent * line.quantity, rate: line.vat })))
}

/** A session counts once, on its own day, however many purchases come of it. */
async function countInSession(db: Db, purchase: PurchaseRow, change: 1 | -1): Promise<void> {
  const session = await db
    .updateTable('shopping_session')
    .set((eb) => ({ completed: eb('completed', '+', change) }))
    .where('session_id', '=', purchase.session_id)
    .returning(['completed', 'created_ms'])
    .executeTakeFirst()
  if (session?.completed !== (change === 1 ? 1 : 0)) return
  await addToDay(db, purchase, dayOf(session.created_ms), { sessions_completed: change })
}
