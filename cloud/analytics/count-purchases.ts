import type { Call } from '../operations/operation.ts'
import type { Db } from '../persistence/database.ts'
import type { PurchaseLineRow, PurchaseRow, ShoppingSessionRow } from '../persistence/tables/purchases.ts'
import { vatBreakdown } from '../scan-and-go/vat.ts'
import { dayOf } from './days.ts'
import { addToDay, addToVat } from './store-days.ts'

/**
 * What a store's day gains by scan and go. Reports tell of purchases as they stand: one that is taken back leaves the day it was
 * paid on. Closings tell of what happened: its VAT is given back on the day that it is taken back.
 */

type Moment = Pick<Call, 'db' | 'nowMs'>

/** Somebody has checked in. */
export async function countSession({ db }: Moment, session: ShoppingSessionRow): Promise<void> {
  await addToDay(db, session, dayOf(session.created_ms), { sessions: 1 })
}

/** A purchase is paid. */
export async function countCompleted({ db, nowMs }: Moment, purchase: PurchaseRow, lines: readonly PurchaseLineRow[]): Promise<void> {
  const day = dayOf(nowMs)
  await addToDay(db, purchase, day, { completed_checkouts: 1, revenue_cent: purchase.total_cent, items_scanned: unitsOf(lines), receipts: 1 })
  for (const { rate, cent, tax } of taxesOf(lines)) await addToVat(db, purchase, day, rate, { sales_cent: cent, sales_tax_cent: tax })
  await countInSession(db, purchase, 1)
}

/** A paid purchase is taken back as a whole. */
export async function countCancelled({ db, nowMs }: Moment, purchase: PurchaseRow, lines: readonly PurchaseLineRow[]): Promise<void> {
  const day = dayOf(nowMs)
  await addToDay(db, purchase, dayOf(purchase.completed_ms ?? nowMs), {
    completed_checkouts: -1,
    revenue_cent: -purchase.total_cent,
    items_scanned: -unitsOf(lines),
  })
  await addToDay(db, purchase, day, { refunds: 1 })
  for (const { rate, cent, tax } of taxesOf(lines)) await addToVat(db, purchase, day, rate, { refund_cent: cent, refund_tax_cent: tax })
  await countInSession(db, purchase, -1)
}

/** Pieces of goods: nobody scans a deposit. */
function unitsOf(lines: readonly PurchaseLineRow[]): number {
  return lines.reduce((sum, line) => sum + (line.deposit_of === null ? line.quantity : 0), 0)
}

/** Gross and tax of each rate, as they stand on the receipt. */
function taxesOf(lines: readonly PurchaseLineRow[]): { rate: number; cent: number; tax: number }[] {
  const amounts = lines.map((line) => ({ cent: line.price_cent * line.quantity, rate: line.vat }))
  return Object.entries(vatBreakdown(amounts)).map(([rate, { net, tax }]) => ({ rate: Number(rate), cent: net + tax, tax }))
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
