import { piecesLeft } from './decimals.ts'
import {
  gtinOfLine,
  saleTagKey,
  tagCountOf,
  tagsOf,
  takesBack,
  type SaleLine,
  type SaleTag,
  type TillSale,
} from './till-sale.ts'

/** Lines of a sale that cancel other lines of it (ADR till-sales). */

const TAG_KINDS = ['epc', 'tagUid', 'tagId'] as const

/** Name of the item of a tag, equal for all its tags; undefined if no item has the tag. */
export type ItemOfTag = (tag: SaleTag) => string | undefined

const unknownItem: ItemOfTag = () => undefined

/** Number of pieces that tags name. Only their items tell whether tags of two kinds name one piece or two. */
export function pieceCountOf(tags: readonly SaleTag[], itemOf: ItemOfTag = unknownItem): number {
  const items = new Set(tags.flatMap((tag) => itemOf(tag) ?? []))
  const ofKind = TAG_KINDS.map((kind) => tags.filter((tag) => tag.kind === kind).length)
  return Math.max(items.size, ...ofKind)
}

/**
 * Finds tags that a sale both sells and takes back, such as a corrected line: each line that takes a piece back cancels
 * one that sells it. Returns true for a tag of line number `line` that counts for nothing.
 */
export function cancelledTags(
  { lines }: Pick<TillSale, 'lines'>,
  itemOf: ItemOfTag = unknownItem,
): (line: number, tag: SaleTag) => boolean {
  const nameOf = (tag: SaleTag) => itemOf(tag) ?? saleTagKey(tag)
  const pieces = new Map<string, { sold: number[]; back: number[] }>()
  for (const [i, line] of lines.entries())
    for (const name of new Set(tagsOf(line).map(nameOf))) {
      const piece = pieces.get(name) ?? { sold: [], back: [] }
      pieces.set(name, piece)
      ;(takesBack(line) ? piece.back : piece.sold).push(i)
    }
  const cancelled = new Set<string>()
  for (const [name, { sold, back }] of pieces) {
    const pairs = Math.min(sold.length, back.length)
    for (const i of [...sold.slice(0, pairs), ...back.slice(0, pairs)]) cancelled.add(`${i} ${name}`)
  }
  return (line, tag) => cancelled.has(`${line} ${nameOf(tag)}`)
}

/**
 * Quantity of each line that the sale itself takes back, in pieces or kg. A line that takes goods back takes all of it, and
 * cancels what it names by its tag, or without tags by the same product, price and weight. What it does not find in the
 * sale was sold before: an exchange. A line with the negated price of another one cancels it like a negative quantity. What
 * it does not find is a discount or empties.
 */
export function cameBackAtOnce(
  { lines }: Pick<TillSale, 'lines'>,
  itemOf: ItemOfTag = unknownItem,
  isCancelled = cancelledTags({ lines }, itemOf),
): number[] {
  const back = lines.map((line) => (takesBack(line) ? Math.abs(line.quantity) : 0))
  const sold = new Map<string, number[]>()
  // Pieces without tags first: a line that cancels without a tag hardly means a tagged one.
  const order = [...lines.entries()].toSorted(([, a], [, b]) => Math.min(tagCountOf(a), 1) - Math.min(tagCountOf(b), 1))
  for (const [i, line] of order) {
    if (takesBack(line)) continue
    const cancelled = tagsOf(line).filter((tag) => isCancelled(i, tag))
    back[i] = Math.min(line.quantity, pieceCountOf(cancelled, itemOf))
    const key = goodsKey(line)
    sold.set(key, [...(sold.get(key) ?? []), i])
  }
  const cancel = (line: SaleLine, quantity: number, mayCancel: (sold: SaleLine) => boolean): number => {
    let left = quantity
    for (const i of sold.get(goodsKey(line)) ?? []) {
      const other = lines[i]
      if (!other || !mayCancel(other)) continue
      const taken = Math.min(left, piecesLeft(other.quantity, back[i]))
      back[i] = piecesLeft(back[i] ?? 0, -taken)
      left = piecesLeft(left, taken)
    }
    return quantity - left
  }
  const untagged = [...lines.entries()].filter(([, line]) => tagCountOf(line) === 0)
  for (const [, line] of untagged) if (takesBack(line)) cancel(line, Math.abs(line.quantity), () => true)
  for (const [i, line] of untagged) {
    if (takesBack(line) || line.priceUnit >= 0) continue
    const voided = { ...line, priceUnit: -line.priceUnit }
    back[i] = (back[i] ?? 0) + cancel(voided, piecesLeft(line.quantity, back[i]), isReleasable)
  }
  return back
}

/** True if a tag may leave for this line. A deposit has neither a product nor tags; empties have its name and price. */
function isReleasable(line: SaleLine): boolean {
  return line.ean !== undefined || line.productId !== undefined || tagCountOf(line) > 0
}

/** Equal for lines of the same goods at the same price. Weighed goods are the same only with the same weight. */
function goodsKey(line: SaleLine): string {
  const { ean, productId, name: text, priceUnit, vat, quantity } = line
  const goods = productId ?? gtinOfLine(line) ?? ean ?? text
  const weight = Number.isInteger(quantity) ? undefined : Math.abs(quantity)
  return JSON.stringify([goods, priceUnit, vat, weight])
}
