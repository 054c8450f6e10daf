import type { Call } from '../../platform/operations/operation.ts'
import { groupBy } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { isPaid } from '../../protection/authorize/item-facts.ts'
import { moveBack, PURCHASES_LIMIT } from '../../protection/items/move-by-staff.ts'
import { findPurchase, wholePurchase } from '../../shop/purchases/queries.ts'
import { insertRefund, REFUNDS_LIMIT, returnedPieces } from '../../shop/purchases/refunds.ts'
import { bookRefund } from '../checkout/book-refund.ts'

/**
 * Takes goods back that came with another sale, which credits their money. Their former sales note it, so they cannot come
 * back again. Of more than `PURCHASES_LIMIT` sales, the others do not note it.
 */
export async function takeExchanged(
  call: Call,
  items: readonly Row<'protected_item'>[],
  reason: string,
): Promise<void> {
  const sold = groupBy(items, (item) => item.purchase_id ?? '')
  for (const [purchaseId, ofSale] of [...sold].slice(0, PURCHASES_LIMIT)) {
    const purchase = await findPurchase(call.db, ofSale[0]?.tenant ?? '', purchaseId)
    if (!purchase || purchase.till === null || !isPaid(purchase)) continue
    const { refunds } = await wholePurchase(call, purchase)
    const gone = returnedPieces(refunds)
    const back = ofSale.filter((item) => !gone.get(item.line_id ?? '')?.unitNos.includes(item.unit_no ?? 0))
    const pieces = [...groupBy(back, (item) => item.line_id ?? '')].map(([itemLineId, ofLine]) => ({
      itemLineId,
      quantity: ofLine.length,
      unitNos: ofLine.flatMap((item) => item.unit_no ?? []),
    }))
    if (pieces.length === 0 || refunds.length >= REFUNDS_LIMIT) continue
    const refund = await insertRefund(call, {
      purchase,
      payment: null,
      kind: 'part',
      amountCent: 0,
      state: 'done',
      lines: pieces,
      reason,
    })
    await bookRefund(call, purchase, refund)
  }
  await moveBack(call, items, 'returned', { reason })
}
