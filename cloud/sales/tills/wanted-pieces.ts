import { foldText } from '../../../policy/fold-text.ts'
import { tagsOf, type KeptReturn } from '../../../policy/till-sale.ts'
import { isSold } from '../../../policy/item-status.ts'
import { invalid, notFound, precondition } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import { groupBy, type Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { itemsWith } from '../../protection/items/item-queries.ts'
import { readUnits } from '../../shop/purchases/queries.ts'
import { piecesLeft } from '../../../policy/decimals.ts'
import { isCoupon, soldPieces } from '../../shop/purchases/line-value.ts'
import type { WholePurchase } from '../../shop/purchases/present.ts'
import type { returnedPieces } from '../../shop/purchases/refunds.ts'
import type { choosePieces } from '../payments/refund-outcome.ts'
import { warningsOf } from './doubts.ts'
import { findSale, keyOfPurchase } from './queries.ts'

type Wanted = Parameters<typeof choosePieces>[3][number]

/** The lines of untag that a return names by the till's lines, by tags, or by nothing: all that is left. */
export async function wantedOf(
  { db }: Call,
  { purchase, lines: all }: WholePurchase,
  gone: ReturnType<typeof returnedPieces>,
  request: KeptReturn,
): Promise<Wanted[]> {
  const { tenant, purchase_id: purchaseId } = purchase
  if (request.lines) {
    const wanted = request.lines.map(({ lineId, quantity, ...tags }, i): Wanted => {
      const line = all.find(({ till_line, line_id }) => till_line === lineId || line_id === lineId)
      if (!line)
        throw notFound('line of this sale', {
          path: `lines[${i}].lineId`,
          fix: 'send the lineId of recordSales, its position, or the itemLineId of fetchPurchase',
        })
      // 2 kg of weighed goods look like two pieces.
      if (quantity !== undefined && line.weight_grams === null && line.tagged === 1 && !Number.isInteger(quantity))
        throw invalid(`lines[${i}].quantity`, 'must be whole, because the line has pieces')
      // Weighed goods are one piece, and a part of their weight is a part of it.
      const count = quantity === undefined ? undefined : (quantity * 1_000) / (line.weight_grams ?? 1_000)
      return { itemLineId: line.line_id, quantity: count, ...tags }
    })
    return [...groupBy(wanted, (wish) => wish.itemLineId).values()].map(joined)
  }
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
  const doubts = await doubtsOf(db, purchase)
  const lineOf = new Map(bound.map((unit) => [unit.item_id, unit.line_id]))
  const wanted = new Map<string, TagsOfLine>()
  const boundOf = new Map(
    [...groupBy(bound, (unit) => unit.line_id)].map(([lineId, units]) => {
      const back = new Set(gone.get(lineId)?.unitNos)
      return [lineId, units.filter((unit) => !back.has(unit.unit_no)).length]
    }),
  )
  /** Pieces of a line of which no tag is known, without those that this return names. */
  const withoutTag = (line: Row<'purchase_line'>) => {
    const back = gone.get(line.line_id)
    const here = boundOf.get(line.line_id) ?? 0
    const wish = wanted.get(line.line_id)
    return piecesLeft(soldPieces(line), back?.quantity) - here - (wish ? wish.quantity - namedIn(wish) : 0)
  }
  const itemOf = await itemsWith(db, tenant, [request])
  for (const { kind, id, isValid } of tags) {
    const item = isValid ? itemOf({ [kind]: id }) : undefined
    const lineId = lineOf.get(item?.item_id ?? '') ?? item?.line_id ?? ''
    const isOfSale = all.some((line) => line.line_id === lineId)
    const itemLineId = isOfSale ? lineId : lineOfDoubtful(all, { id, item, doubts, withoutTag })?.line_id
    if (itemLineId === undefined) throw invalid(`${kind}s`, `${id} is not a piece of this sale`, 'item_unknown')
    const wish = wanted.get(itemLineId) ?? { itemLineId, quantity: 0, epcs: [], tagUids: [], tagIds: [] }
    wish.quantity++
    if (isOfSale) wish[`${kind}s`].push(id)
    wanted.set(itemLineId, wish)
  }
  return [...wanted.values()].map(({ quantity, ...wish }) => {
    return quantity > namedIn(wish) ? { ...wish, quantity } : wish
  })
}

interface TagsOfLine {
  itemLineId: string
  quantity: number
  epcs: string[]
  tagUids: string[]
  tagIds: string[]
}

const namedIn = ({ epcs, tagUids, tagIds }: Pick<TagsOfLine, 'epcs' | 'tagUids' | 'tagIds'>) =>
  epcs.length + tagUids.length + tagIds.length

/** The lines of the tags that a sale kept as doubtful, by the name of the tag. */
async function doubtsOf(db: Db, purchase: Row<'purchase'>): Promise<ReadonlyMap<string, string>> {
  const sale = await findSale(db, keyOfPurchase(purchase))
  return new Map(warningsOf(sale).flatMap(({ tag, lineId }) => (tag && lineId ? [[foldText(tag), lineId]] : [])))
}

/**
 * The line of a tag that is no piece of the sale: the one that named it, if the sale kept it as doubtful; else the only
 * line of its product that has a piece without a known tag, or the only such line if the tag is unknown. Other pieces
 * are those of other tags.
 */
function lineOfDoubtful(
  all: WholePurchase['lines'],
  {
    id,
    item,
    doubts,
    withoutTag,
  }: {
    id: string
    item: Row<'protected_item'> | undefined
    doubts: ReadonlyMap<string, string>
    withoutTag: (line: Row<'purchase_line'>) => number
  },
): Row<'purchase_line'> | undefined {
  const names = [id, item?.epc, item?.tag_uid, item?.tag_id]
  const lineIds = new Set(names.flatMap((name) => doubts.get(foldText(name ?? '')) ?? []))
  const named = all.find((line) => !isCoupon(line) && lineIds.has(line.till_line ?? ''))
  if (named) return named
  // Another sale has it, and this one did not name it.
  if (item && isSold(item.item_status)) return undefined
  const left = all.filter((line) => !isCoupon(line) && withoutTag(line) > 0)
  const ofProduct = left.filter((line) => item !== undefined && line.product_id === item.product_id)
  const [only, ...others] = ofProduct.length > 0 ? ofProduct : left
  return others.length === 0 ? only : undefined
}

/** Entries of one line as one. */
function joined(wishes: readonly Wanted[]): Wanted {
  const [first] = wishes
  if (first === undefined || wishes.length === 1) return first as Wanted
  const tags = (name: 'epcs' | 'tagUids' | 'tagIds') => wishes.flatMap((wish) => wish[name] ?? [])
  const counts = wishes.map((wish) => {
    const named = (wish.epcs?.length ?? 0) + (wish.tagUids?.length ?? 0) + (wish.tagIds?.length ?? 0)
    return wish.quantity ?? (named > 0 ? named : undefined)
  })
  // An entry without a quantity means all that is left.
  const isAll = counts.includes(undefined)
  const quantity = isAll ? undefined : counts.reduce<number>((sum, count) => sum + (count ?? 0), 0)
  return {
    itemLineId: first.itemLineId,
    quantity,
    epcs: tags('epcs'),
    tagUids: tags('tagUids'),
    tagIds: tags('tagIds'),
  }
}
