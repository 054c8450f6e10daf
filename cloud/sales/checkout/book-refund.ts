import {
  countRefund,
  taxesOf,
  taxesOfSold,
  unitsOf,
  type CountedRefund,
  shareRefund,
  sharesLeft,
  sharesOf,
} from '../../shop/analytics/count-purchases.ts'
import { adjustEarnings, ADJUSTMENT_EVENTS } from '../../shop/loyalty/ledger.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { piecesLeft } from '../../../policy/decimals.ts'
import {
  paidByLine,
  amountsOfPieces,
  soldPieces,
  piecesOf,
  sumPieces,
  type Pieces,
  toReturnedLines,
} from '../../shop/purchases/line-value.ts'
import { readLines, readUnits } from '../../shop/purchases/queries.ts'
import { refundsOf, updateRefund } from '../../shop/purchases/refund-queries.ts'
import { countsAgainstTotal, unrefundedCent } from '../../shop/purchases/refunds.ts'
import { definedFields } from '../../platform/operations/fields.ts'
import { precondition } from '../../platform/foundation/failure.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { readItems } from '../../protection/items/item-queries.ts'
import { recallsIn } from '../../protection/items/recalls.ts'
import { hasRecalledUnit } from '../../protection/recalls/publish-recalls.ts'

/**
 * Why a payment of this purchase cannot sell the item; undefined if it can. The tag may be on other goods since the
 * checkout: the price of the line then is not theirs.
 */
export function whyUnsaleable(
  item: Row<'protected_item'>,
  purchase: Pick<Row<'purchase'>, 'store_id' | 'till'>,
  line: Pick<Row<'purchase_line'>, 'product_id'> | undefined,
): string | undefined {
  if (item.store_id !== purchase.store_id) return 'in another store'
  if (item.item_status !== 'sellable') return item.item_status
  // The goods of a till's sale are judged where it is recorded (sales/tills/sale-lines.ts).
  const isAlike = item.product_id === null || purchase.till !== null || item.product_id === line?.product_id
  return isAlike ? undefined : 'of another product'
}

/** True if another purchase has meanwhile sold an item of this unpaid purchase, or the item is no longer for sale. */
export async function hasSoldItem(db: Db, purchase: Row<'purchase'>): Promise<boolean> {
  const units = (await readUnits(db, purchase.purchase_id)).filter(({ item_id: itemId }) => itemId !== null)
  if (units.length === 0) return false
  const lines = new Map((await readLines(db, purchase.purchase_id)).map((line) => [line.line_id, line]))
  const items = await readItems(
    db,
    units.flatMap(({ item_id: itemId }) => itemId ?? []),
  )
  return units.some(({ item_id: itemId, line_id: lineId }) => {
    const item = items.get(itemId ?? '')
    return item !== undefined && whyUnsaleable(item, purchase, lines.get(lineId)) !== undefined
  })
}

/**
 * Throws 409 if goods of this purchase were sold or recalled meanwhile, so that no shopper starts to pay for them. A
 * payment that has started takes effect (complete-purchase.ts). An unpaid basket blocks no item (ADR sales).
 */
export async function assertForSale(db: Db, purchase: Row<'purchase'>): Promise<void> {
  if (await hasSoldItem(db, purchase))
    throw precondition(
      'item_already_paid',
      'an item of this purchase was sold meanwhile: start a new checkout without it',
      { allowedNext: [] },
    )
  const recalls = await recallsIn(db, purchase)
  if (await hasRecalledUnit(db, purchase, (goods) => recalls.stop(goods)))
    throw precondition('recalled', 'goods of this purchase are recalled: start a new checkout without them', {
      allowedNext: [],
    })
}

/** Events of refunds that complete, or fail after completion. */
export const REFUND_EVENTS = ['payment.refunded', ...ADJUSTMENT_EVENTS] as const

/** Emits `payment.refunded`. */
export function emitRefunded(call: Call, refund: Row<'refund'>, provider: string | undefined): void {
  call.emit({
    type: 'payment.refunded',
    storeId: refund.store_id,
    data: definedFields({
      transactionId: refund.purchase_id,
      storeId: refund.store_id,
      refundId: refund.refund_id,
      provider,
      amountCent: refund.amount_cent,
      currency: refund.currency,
      lines: refund.lines === null ? undefined : toReturnedLines(refund),
    }),
  })
}

/**
 * Updates the reports and the customer's loyalty points after a refund completed. Ignores refunds of late payments,
 * because such payments never belonged to the purchase.
 */
export async function bookRefund(call: Call, purchase: Row<'purchase'>, refund: Row<'refund'>): Promise<void> {
  if (refund.kind === 'late' || refund.counted !== null) return
  const counted = await figuresOf(call, purchase, refund)
  await updateRefund(call.db, refund, { counted: JSON.stringify(counted) })
  await countRefund(call, purchase, counted, 1)
  await adjustPoints(call, purchase)
}

/** Reverses `bookRefund` for a refund that failed after it was completed. */
export async function unbookRefund(call: Call, purchase: Row<'purchase'>, refund: Row<'refund'>): Promise<void> {
  if (refund.counted === null) return
  await updateRefund(call.db, refund, { counted: null })
  await countRefund(call, purchase, JSON.parse(refund.counted) as CountedRefund, -1)
  await adjustPoints(call, purchase)
}

async function figuresOf({ db }: Call, purchase: Row<'purchase'>, refund: Row<'refund'>): Promise<CountedRefund> {
  const lines = await readLines(db, purchase.purchase_id)
  const refunds = await refundsOf(db, purchase.purchase_id)
  const before = refunds.flatMap((row) => (row.counted === null ? [] : [JSON.parse(row.counted) as CountedRefund]))
  // A void takes back all that the sale counted, also what it credited for goods that came back in it.
  const isVoid = refund.kind === 'whole' && purchase.till !== null
  const left = sharesLeft(
    isVoid ? taxesOf(lines) : taxesOfSold(lines),
    before.flatMap((counted) => counted.shares),
  )
  const gone = sumPieces(before.flatMap((counted) => counted.pieces))
  const pieces = refund.kind === 'whole' ? restOf(lines, gone, refunds) : piecesOf(refund)
  const own = sharesOf(amountsOfPieces(pieces, lines, paidByLine(lines), gone))
  const leftCent = left.reduce((sum, { cent }) => sum + cent, 0)
  // A rate of empties or discounts may be negative: what repays all repays each rate.
  const shares =
    isVoid || (refund.kind === 'whole' && refund.amount_cent === leftCent)
      ? left.filter(({ cent, tax }) => cent !== 0 || tax !== 0)
      : shareRefund(left, own, refund.amount_cent)
  // The reports subtract the purchase once, even if several refunds repay the rest.
  const isWhole = refund.kind === 'whole' && !before.some((counted) => counted.isWhole)
  const back = sumPieces(pieces)
  const unitsBack = (line: Row<'purchase_line'>) => {
    const sold = soldPieces(line)
    const left = piecesLeft(sold, gone.get(line.line_id)?.quantity)
    // Weighed goods count when their last part comes back.
    return Math.ceil(left) - Math.ceil(piecesLeft(left, back.get(line.line_id)?.quantity))
  }
  return { shares, units: unitsOf(lines, unitsBack), pieces, isWhole }
}

/**
 * Pieces of a whole refund: all that no counted refund returned, except those of pending partial refunds. Partial
 * refunds subtract their pieces when they complete.
 */
function restOf(
  lines: readonly Row<'purchase_line'>[],
  gone: ReadonlyMap<string, Pieces>,
  refunds: readonly Row<'refund'>[],
): Pieces[] {
  const underWay = sumPieces(
    refunds.filter((row) => row.kind === 'part' && row.counted === null && countsAgainstTotal(row)).flatMap(piecesOf),
  )
  return lines.flatMap((line) => {
    const { line_id: itemLineId } = line
    const left = piecesLeft(
      piecesLeft(soldPieces(line), gone.get(itemLineId)?.quantity),
      underWay.get(itemLineId)?.quantity,
    )
    return left > 0 ? [{ itemLineId, quantity: left, unitNos: [] }] : []
  })
}

async function adjustPoints(call: Call, purchase: Row<'purchase'>): Promise<void> {
  const { tenant, purchase_id: transactionId, total_cent: totalCent } = purchase
  await adjustEarnings(call, {
    tenant,
    transactionId,
    totalCent,
    remainingCent: unrefundedCent(purchase, await refundsOf(call.db, transactionId)),
  })
}
