import { countRefund, taxesOf, unitsOf, type CountedRefund } from '../analytics/count-purchases.ts'
import { shareRefund, sharesLeft } from '../analytics/refund-shares.ts'
import { adjustEarnings } from '../loyalty/earn-automatically.ts'
import type { Call } from '../operations/operation.ts'
import type { RefundRow } from '../persistence/tables/payments.ts'
import type { PurchaseRow } from '../persistence/tables/purchases.ts'
import { readLines } from '../scan-and-go/queries.ts'
import { refundsOf, updateRefund } from './queries.ts'

/**
 * What follows for the figures and the customer's points once money has gone back; not before, for until then it may fail.
 * Money that came too late (`late`) was never the purchase's: nothing follows from it.
 */
export async function settleRefund(call: Call, purchase: PurchaseRow, refund: RefundRow): Promise<void> {
  if (refund.kind === 'late' || refund.counted !== null) return
  const counted = await countedBy(call, purchase, refund)
  await updateRefund(call.db, refund, { counted: JSON.stringify(counted) })
  await countRefund(call, purchase, counted, 1)
  await earnForRest(call, purchase)
}

/** A purchase was taken back as a whole, and there was no money to give back. */
export async function settleWithoutMoney(call: Call, purchase: PurchaseRow): Promise<void> {
  await countRefund(call, purchase, await countedBy(call, purchase, undefined), 1)
  await adjustEarnings(call, { ...earnedBy(purchase), remainingCent: 0 })
}

/** It came out that the money of a refund that was done did not go back. */
export async function unsettleRefund(call: Call, purchase: PurchaseRow, refund: RefundRow): Promise<void> {
  if (refund.counted === null) return
  await updateRefund(call.db, refund, { counted: null })
  await countRefund(call, purchase, JSON.parse(refund.counted) as CountedRefund, -1)
  await earnForRest(call, purchase)
}

async function countedBy({ db }: Call, purchase: PurchaseRow, refund: RefundRow | undefined): Promise<CountedRefund> {
  const lines = await readLines(db, purchase.purchase_id)
  const before = (await refundsOf(db, purchase.purchase_id)).flatMap((row) => (row.counted === null ? [] : [JSON.parse(row.counted) as CountedRefund]))
  const left = sharesLeft(taxesOf(lines), before.flatMap((counted) => counted.shares))
  const standing = before.some((counted) => counted.isWhole) ? [] : lines.filter((line) => !before.some((counted) => counted.lineIds.includes(line.line_id)))
  if (!refund || refund.kind === 'whole') return { shares: left, units: unitsOf(standing), lineIds: standing.map((line) => line.line_id), isWhole: true }
  const named = JSON.parse(refund.line_ids ?? '[]') as string[]
  const returned = standing.filter((line) => named.includes(line.line_id))
  const shares = shareRefund(left, taxesOf(lines.filter((line) => named.includes(line.line_id))), refund.amount_cent)
  return { shares, units: unitsOf(returned), lineIds: returned.map((line) => line.line_id), isWhole: false }
}

async function earnForRest(call: Call, purchase: PurchaseRow): Promise<void> {
  const done = (await refundsOf(call.db, purchase.purchase_id)).filter((refund) => refund.kind !== 'late' && refund.state === 'done')
  const remainingCent = done.some((refund) => refund.kind === 'whole') ? 0 : done.reduce((left, refund) => left - refund.amount_cent, purchase.total_cent)
  await adjustEarnings(call, { ...earnedBy(purchase), remainingCent })
}

function earnedBy({ tenant, purchase_id: transactionId, total_cent: totalCent }: PurchaseRow) {
  return { tenant, transactionId, totalCent }
}
