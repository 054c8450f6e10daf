import { invalid, notFound, precondition } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { UnitRightRow } from '../../platform/persistence/tables/protection.ts'
import type { PurchaseLineRow, PurchaseRow, PurchaseUnitRow } from '../../platform/persistence/tables/purchases.ts'
import { findItem, tagsIn, type TagLists } from '../../protection/items/item-queries.ts'
import { rightsOfPurchase } from '../../protection/rights/rights.ts'
import { isCoupon, sumPieces, type Pieces } from '../../shop/purchases/line-value.ts'
import type { WholePurchase } from '../../shop/purchases/present.ts'
import { readUnits } from '../../shop/purchases/queries.ts'

/** Pieces of a line in a request for a refund. */
export interface WantedPieces extends TagLists {
  itemLineId: string
  quantity?: number | undefined
}

/** A purchase and what is known about its tagged pieces. */
interface Known {
  readonly purchase: PurchaseRow
  readonly units: readonly PurchaseUnitRow[]
  /** Release rights by line and number of the piece. */
  readonly rights: ReadonlyMap<string, UnitRightRow>
}

const keyOf = ({ line_id, unit_no }: Pick<PurchaseUnitRow, 'line_id' | 'unit_no'>) => `${line_id}/${unit_no}`

/**
 * Chooses the pieces that come back (ADR 0008). `gone`: pieces that came back with other refunds. Deposits follow their
 * goods, unless the request names the line of the deposit. Coupon lines are left out, because a coupon is a part of
 * what was paid for the goods. Throws 400, 404 or 409 if the purchase has no such pieces.
 */
export async function choosePieces(
  call: Call,
  { purchase, lines }: WholePurchase,
  gone: ReadonlyMap<string, Pieces>,
  wanted: readonly WantedPieces[],
): Promise<Pieces[]> {
  const { db } = call
  const rights = await rightsOfPurchase(db, purchase.purchase_id, 'release')
  const known: Known = {
    purchase,
    units: await readUnits(db, purchase.purchase_id),
    rights: new Map(rights.map((right) => [keyOf(right), right])),
  }
  const chosen = new Map<string, Pieces>()
  for (const [i, wish] of wanted.entries()) {
    const line = lines.find(({ line_id: lineId }) => lineId === wish.itemLineId)
    if (!line) throw notFound('line of this purchase')
    if (chosen.has(line.line_id)) throw invalid(`lines[${i}]`, 'names the same line again', 'repeated')
    if (isCoupon(line)) continue
    chosen.set(line.line_id, await piecesOfLine(call, line, gone.get(line.line_id), known, wish, `lines[${i}].`))
  }
  if (chosen.size === 0) throw invalid('lines', 'names only coupons: name the goods that were returned')
  for (const deposit of lines.filter(({ deposit_of: goods }) => goods !== null)) {
    const goods = chosen.get(deposit.deposit_of ?? '')
    const left = deposit.quantity - (gone.get(deposit.line_id)?.quantity ?? 0)
    if (!goods || left === 0 || chosen.has(deposit.line_id)) continue
    const quantity = Math.min(goods.quantity, left)
    chosen.set(deposit.line_id, { itemLineId: deposit.line_id, quantity, unitNos: [] })
  }
  return [...chosen.values()].sort((a, b) => (a.itemLineId < b.itemLineId ? -1 : 1))
}

async function piecesOfLine(
  call: Call,
  line: PurchaseLineRow,
  gone: Pieces | undefined,
  known: Known,
  wish: WantedPieces,
  path: string,
): Promise<Pieces> {
  const left = line.quantity - (gone?.quantity ?? 0)
  const free = known.units.filter((unit) => unit.line_id === line.line_id && !gone?.unitNos.includes(unit.unit_no))
  const named = await namedUnits(call, line, free, known, wish, path)
  const count = wish.quantity ?? (named.length > 0 ? named.length : left)
  if (count < named.length) throw invalid(`${path}quantity`, 'is less than the number of tags', 'too_many_items')
  if (left === 0 || count > left)
    throw precondition(
      'already_refunded',
      left === 0 ? 'one of these lines was already refunded' : `only ${left} of "${line.name}" are left to refund`,
      { allowedNext: [] },
    )
  const others = free.filter((unit) => !named.includes(unit)).sort((a, b) => rankOf(a, known) - rankOf(b, known))
  const chosen = others.slice(0, count - named.length)
  if (chosen.length < others.length && chosen.some((unit) => rankOf(unit, known) === TAG_IS_ON))
    throw invalid(
      path.slice(0, -1),
      'these pieces have different tags: name those that came back in epcs, tagUids or tagIds',
      'tags_missing',
    )
  const unitNos = [...named, ...chosen].map((unit) => unit.unit_no).sort((a, b) => a - b)
  return { itemLineId: line.line_id, quantity: count, unitNos }
}

const TAG_IS_ON = 3

/**
 * Order in which pieces come back if the request names no tags: first those that staff or a failed refund already
 * returned, then those of which no tag is known, so that no right outlives its goods, then those whose tag was taken
 * off. Pieces whose known tag is still on them can be distinguished, so the request must name them.
 */
function rankOf(unit: PurchaseUnitRow, { rights }: Known): number {
  const right = rights.get(keyOf(unit))
  if (right && right.returned_by !== null) return 0
  if (right?.state === 'used' && right.outcome === 'confirmed') return 2
  return unit.bound === 1 ? TAG_IS_ON : 1
}

/**
 * The pieces with these tags. A tag that no piece of the purchase is bound to, on goods of this product, stands for a
 * piece of which no tag is known.
 */
async function namedUnits(
  { db }: Call,
  line: PurchaseLineRow,
  free: readonly PurchaseUnitRow[],
  known: Known,
  wish: WantedPieces,
  path: string,
): Promise<PurchaseUnitRow[]> {
  const units: PurchaseUnitRow[] = []
  const items = new Set<string>()
  const { tenant, store_id: storeId } = known.purchase
  for (const { path: where, identifiers } of tagsIn(wish, path)) {
    const item = await findItem(db, tenant, identifiers)
    if (item?.store_id !== storeId) throw invalid(where, 'is not registered in this store', 'item_unknown')
    if (items.has(item.item_id)) continue
    items.add(item.item_id)
    const own = known.units.find((unit) => unit.bound === 1 && unit.item_id === item.item_id)
    const isOfLine = own?.line_id === line.line_id
    if (isOfLine && !free.includes(own))
      throw precondition('already_refunded', `${where}: this piece was already refunded`, { allowedNext: [] })
    const unknown = free.find((unit) => !units.includes(unit) && rankOf(unit, known) === 1)
    const isAlike = !own && item.product_id === line.product_id && item.item_status === 'sellable'
    const unit = isOfLine ? own : isAlike ? unknown : undefined
    if (!unit) throw invalid(where, 'is not a piece of this line')
    units.push(unit)
  }
  return units
}

/** True if both name the same pieces. */
export function areSamePieces(a: readonly Pieces[] | undefined, b: readonly Pieces[] | undefined): boolean {
  const text = (pieces: readonly Pieces[] | undefined) => JSON.stringify(pieces && [...sumPieces(pieces).values()])
  return text(a) === text(b)
}
