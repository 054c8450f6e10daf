import type { Call } from '../../platform/operations/operation.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { prepared } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { isCoupon, prorate, soldPieces, vatBreakdown, type GrossAmount, type Pieces } from '../purchases/line-value.ts'
import { dayOf, addToDay, addToVat } from './store-days.ts'

/** Gross amount of one VAT rate and the tax in it, cents. */
export interface TaxShare {
  rate: number
  cent: number
  tax: number
}

/** Sums lines by rate, as on the receipt. */
export function sharesOf(amounts: readonly GrossAmount[]): TaxShare[] {
  return Object.entries(vatBreakdown(amounts)).map(([rate, { net, tax }]) => ({
    rate: Number(rate),
    cent: net + tax,
    tax,
  }))
}

/** Amounts by VAT rate that remain after refunds. */
export function sharesLeft(sold: readonly TaxShare[], gone: readonly TaxShare[]): TaxShare[] {
  return sold.map(({ rate, cent, tax }) => {
    const back = gone.filter((share) => share.rate === rate)
    return { rate, cent: cent - sum(back.map((share) => share.cent)), tax: tax - sum(back.map((share) => share.tax)) }
  })
}

/**
 * Splits a refund by VAT rate: first over the named lines (`own`), then over the rest in proportion. The share of a
 * rate is at most its remaining amount. The tax of a share is the tax before the refund minus the tax of the remaining
 * amount. So the taxes of all refunds together equal the tax on the receipt.
 */
export function shareRefund(left: readonly TaxShare[], own: readonly TaxShare[], amountCent: number): TaxShare[] {
  const leftCents = left.map((share) => Math.max(0, share.cent))
  const ownCents = left.map((share, i) =>
    Math.max(0, Math.min(leftCents[i] ?? 0, own.find((o) => o.rate === share.rate)?.cent ?? 0)),
  )
  const first = prorate(Math.min(amountCent, sum(ownCents)), ownCents)
  const rest = leftCents.map((cent, i) => cent - (first[i] ?? 0))
  const second = prorate(Math.min(amountCent - sum(first), sum(rest)), rest)
  return left.flatMap(({ rate, cent, tax }, i) => {
    const back = (first[i] ?? 0) + (second[i] ?? 0)
    if (back === 0) return []
    const [rest] = sharesOf([{ cent: cent - back, rate }])
    return { rate, cent: back, tax: tax - (rest?.tax ?? 0) }
  })
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}

/**
 * Counts purchases: those of untag and those of the store's tills apart. Reports show the current state: a refund is subtracted from the day of the payment.
 * Closings show events: a refund is added to the day on which it completed.
 */

type EventContext = Pick<Call, 'db' | 'nowMs'>

/** Counts a check-in. */
export async function countSession({ db }: EventContext, session: Row<'shopping_session'>): Promise<void> {
  await addToDay(db, session, dayOf(session.created_ms), { sessions: 1 })
}

/** Counts a paid purchase. */
export async function countCompleted(
  { db, nowMs }: EventContext,
  purchase: Row<'purchase'>,
  lines: readonly Row<'purchase_line'>[],
): Promise<void> {
  const day = dayOf(nowMs)
  const { total_cent: cent } = purchase
  await addToDay(
    db,
    purchase,
    day,
    purchase.till === null
      ? { completed_checkouts: 1, revenue_cent: cent, items_scanned: unitsOf(lines), receipts: 1 }
      : { till_sales: 1, till_receipts: 1, till_cent: cent, till_items: unitsOf(lines) },
  )
  for (const { rate, cent, tax } of taxesOf(lines))
    await addToVat(db, purchase, { day, rate, is_till: isTill(purchase) }, { sales_cent: cent, sales_tax_cent: tax })
  await countInSession(db, purchase, 1)
}

const isTill = ({ till }: Pick<Row<'purchase'>, 'till'>) => (till === null ? 0 : 1)

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
  purchase: Row<'purchase'>,
  { shares, units, isWhole }: CountedRefund,
  sign: 1 | -1,
): Promise<void> {
  const day = dayOf(nowMs)
  const cent = shares.reduce((sum, share) => sum + share.cent, 0)
  const whole = isWhole ? -sign : 0
  await addToDay(
    db,
    purchase,
    dayOf(purchase.completed_ms ?? nowMs),
    purchase.till === null
      ? { revenue_cent: -sign * cent, items_scanned: -sign * units, completed_checkouts: whole }
      : { till_cent: -sign * cent, till_items: -sign * units, till_sales: whole },
  )
  // A refund of 0 cents is not counted. Such a refund ends a purchase whose whole amount was refunded in parts before.
  if (cent > 0) await addToDay(db, purchase, day, purchase.till === null ? { refunds: sign } : { till_refunds: sign })
  for (const { rate, cent: back, tax } of shares)
    await addToVat(
      db,
      purchase,
      { day, rate, is_till: isTill(purchase) },
      { refund_cent: sign * back, refund_tax_cent: sign * tax },
    )
  if (isWhole) await countInSession(db, purchase, sign === 1 ? -1 : 1)
}

/** Number of pieces of goods, without deposits and coupons. */
export function unitsOf(
  lines: readonly Row<'purchase_line'>[],
  quantityOf: (line: Row<'purchase_line'>) => number = soldPieces,
): number {
  return lines.reduce((sum, line) => sum + (line.deposit_of === null && !isCoupon(line) ? quantityOf(line) : 0), 0)
}

/** Gross amount and tax by VAT rate of the goods that a purchase sold: what may come back. */
export function taxesOfSold(lines: readonly Row<'purchase_line'>[]): TaxShare[] {
  return sharesOf(lines.map((line) => ({ cent: line.price_cent * soldPieces(line), rate: line.vat })))
}

/** Gross amount and tax by VAT rate, as on the receipt. */
export function taxesOf(lines: readonly Row<'purchase_line'>[]): TaxShare[] {
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
async function countInSession(db: Db, purchase: Row<'purchase'>, change: 1 | -1): Promise<void> {
  if (purchase.session_id === null) return
  const [session] = await addCompleted(db, { sessionId: purchase.session_id, change })
  if (session?.completed !== (change === 1 ? 1 : 0)) return
  await addToDay(db, purchase, dayOf(session.created_ms), { sessions_completed: change })
}
