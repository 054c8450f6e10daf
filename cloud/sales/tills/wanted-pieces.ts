import { tagsOf, type KeptReturn } from '../../../policy/till-sale.ts'
import { invalid, notFound } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import { itemsWith } from '../../protection/items/item-queries.ts'
import { isCoupon } from '../../shop/purchases/line-value.ts'
import type { WholePurchase } from '../../shop/purchases/present.ts'
import type { returnedPieces } from '../../shop/purchases/refunds.ts'
import type { choosePieces } from '../payments/refund-outcome.ts'

type Wanted = Parameters<typeof choosePieces>[3][number]

/** The lines of untag that a return names by the till's lines, by tags, or by nothing: all that is left. */
export async function wantedOf(
  { db }: Call,
  { purchase: { tenant }, lines: all }: WholePurchase,
  gone: ReturnType<typeof returnedPieces>,
  request: KeptReturn,
): Promise<Wanted[]> {
  if (request.lines)
    return request.lines.map(({ lineId, quantity, ...tags }, i) => {
      const line = all.find(({ till_line, line_id }) => till_line === lineId || line_id === lineId)
      if (!line)
        throw notFound('line of this sale', {
          path: `lines[${i}].lineId`,
          fix: 'send the lineId of recordSales, its position, or the itemLineId of fetchPurchase',
        })
      if (quantity !== undefined && line.weight_grams === null && !Number.isInteger(quantity))
        throw invalid(`lines[${i}].quantity`, 'must be whole, because the line has pieces')
      // Weighed goods are one piece.
      const count = quantity === undefined ? undefined : line.weight_grams === null ? quantity : 1
      return { itemLineId: line.line_id, quantity: count, ...tags }
    })
  const tags = tagsOf(request)
  if (tags.length === 0)
    return all
      .filter((line) => !isCoupon(line) && line.quantity > (gone.get(line.line_id)?.quantity ?? 0))
      .map((line) => ({ itemLineId: line.line_id }))
  const wanted = new Map<string, { itemLineId: string; epcs: string[]; tagUids: string[]; tagIds: string[] }>()
  const itemOf = await itemsWith(db, tenant, [request])
  for (const { kind, id, isValid } of tags) {
    const item = isValid ? itemOf({ [kind]: id }) : undefined
    const lineId = item?.line_id ?? ''
    if (!all.some((line) => line.line_id === lineId))
      throw invalid(`${kind}s`, `${id} is not a piece of this sale`, 'item_unknown')
    const wish = wanted.get(lineId) ?? { itemLineId: lineId, epcs: [], tagUids: [], tagIds: [] }
    wish[`${kind}s`].push(id)
    wanted.set(lineId, wish)
  }
  return [...wanted.values()]
}
