import { tagsOf, type KeptReturn } from '../../../policy/till-sale.ts'
import { invalid, notFound, precondition } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import { itemsWith } from '../../protection/items/item-queries.ts'
import { readUnits } from '../../shop/purchases/queries.ts'
import { piecesLeft } from '../../../policy/decimals.ts'
import { isCoupon, soldPieces } from '../../shop/purchases/line-value.ts'
import type { WholePurchase } from '../../shop/purchases/present.ts'
import type { returnedPieces } from '../../shop/purchases/refunds.ts'
import type { choosePieces } from '../payments/refund-outcome.ts'

type Wanted = Parameters<typeof choosePieces>[3][number]

/** The lines of untag that a return names by the till's lines, by tags, or by nothing: all that is left. */
export async function wantedOf(
  { db }: Call,
  { purchase: { tenant, purchase_id: purchaseId }, lines: all }: WholePurchase,
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
      // Weighed goods are one piece, and a part of their weight is a part of it.
      const count = quantity === undefined ? undefined : (quantity * 1_000) / (line.weight_grams ?? 1_000)
      return { itemLineId: line.line_id, quantity: count, ...tags }
    })
  const tags = tagsOf(request)
  if (tags.length === 0) {
    const left = all.filter(
      (line) => !isCoupon(line) && piecesLeft(soldPieces(line), gone.get(line.line_id)?.quantity) > 0,
    )
    if (left.length === 0)
      throw precondition('already_refunded', 'all goods of this sale came back before', { allowedNext: [] })
    return left.map((line) => ({ itemLineId: line.line_id }))
  }
  const bound = (await readUnits(db, purchaseId)).filter((unit) => unit.bound === 1)
  const lineOf = new Map(bound.map((unit) => [unit.item_id, unit.line_id]))
  const wanted = new Map<string, { itemLineId: string; epcs: string[]; tagUids: string[]; tagIds: string[] }>()
  const itemOf = await itemsWith(db, tenant, [request])
  for (const { kind, id, isValid } of tags) {
    const item = isValid ? itemOf({ [kind]: id }) : undefined
    const lineId = lineOf.get(item?.item_id ?? '') ?? item?.line_id ?? ''
    if (!all.some((line) => line.line_id === lineId))
      throw invalid(`${kind}s`, `${id} is not a piece of this sale`, 'item_unknown')
    const wish = wanted.get(lineId) ?? { itemLineId: lineId, epcs: [], tagUids: [], tagIds: [] }
    wish[`${kind}s`].push(id)
    wanted.set(lineId, wish)
  }
  return [...wanted.values()]
}
