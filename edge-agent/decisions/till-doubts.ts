import { lotKey } from '../../policy/documents/store-documents.ts'
import { isSold } from '../../policy/item-status.ts'
import { eanOfGtin14, toGtin14 } from '../../policy/gs1/gtin.ts'
import { readLabel } from '../../policy/gs1/in-store-code.ts'
import { readProductCode } from '../../policy/gs1/product-code.ts'
import { isSoldLine, lineIdOf, type SaleTag, type KeptSale } from '../../policy/till-sale.ts'
import type { ItemStatus } from '../../policy/vocabulary.ts'

/** What is doubtful about a sale; the codes of the cloud (cloud/sales/tills/doubts.ts). */
export interface Warning {
  code: string
  message: string
  lineId?: string
  tag?: string
}

/** Warnings about sales whose receipts, codes and tags release nothing. */
const GIVES_NO_RIGHTS: ReadonlySet<string> = new Set(['sale_too_old', 'sale_over_limit', 'sale_of_revoked_till'])

/** True if goods may be released for a sale that was answered like this. */
export function givesRights({ answer }: { readonly answer: string }): boolean {
  const { warnings } = JSON.parse(answer) as { warnings: readonly Warning[] }
  return !warnings.some(({ code }) => GIVES_NO_RIGHTS.has(code))
}

/** True for goods that were sold. Those that this agent does not know were perhaps sold by another. */
export function mayComeBack(item: { status: ItemStatus } | undefined): boolean {
  return item === undefined || isSold(item.status)
}

/**
 * GTIN-14 of the products that a line may stand for, in whichever way the till writes it. A scale's label stands for its
 * product, if the store has no product with that code. `lot`: `lotKey`, if the code has it. `isUnknown`: only the cloud
 * knows the product.
 */
export function productsOfLine(
  { ean, productId }: Pick<KeptSale['lines'][number], 'ean' | 'productId'>,
  layouts: readonly string[],
): { gtins: string[]; lot: string | undefined; isUnknown: boolean } {
  const read = ean === undefined ? undefined : readProductCode(ean.trim())
  const gtin = read?.ok ? read.code.gtin14 : toGtin14(ean?.trim() ?? '')
  const label = gtin === undefined ? undefined : readLabel(eanOfGtin14(gtin) ?? '', layouts)
  const gtins = [gtin, read?.ok ? read.code.otherGtin14 : undefined, toGtin14(label?.ean ?? '')]
  const isUnknown = productId !== undefined || (ean !== undefined && gtin === undefined)
  const lot = read?.ok && read.code.lot !== undefined ? lotKey(read.code.gtin14, read.code.lot) : undefined
  return { gtins: [...new Set(gtins.flatMap((each) => each ?? []))], lot, isUnknown }
}

/** Lines of which the product or lot is recalled. `recalledGoods`: both, as the policy names them. */
export function recalledLines(
  { lines }: Pick<KeptSale, 'lines'>,
  recalledGoods: readonly string[],
  layouts: readonly string[],
): Warning[] {
  if (recalledGoods.length === 0) return []
  const recalled = new Set(recalledGoods)
  const isStopped = (line: KeptSale['lines'][number]) => {
    const { gtins, lot } = productsOfLine(line, layouts)
    return [...gtins, lot ?? ''].some((name) => recalled.has(name))
  }
  return lines.flatMap((line, i) =>
    isSoldLine(line) && isStopped(line)
      ? [
          {
            code: 'sale_of_held_item',
            message: `the product ${line.ean ?? ''} is recalled: keep the goods here`,
            lineId: lineIdOf(line, i),
          },
        ]
      : [],
  )
}

/** A tag that was sold before. */
export function soldBefore({ id }: SaleTag): Pick<Warning, 'code' | 'message'> {
  return { code: 'item_already_paid', message: `the tag ${id} was sold before` }
}

/** A tag of a line that already names as many pieces as it sells. */
export function moreItems({ id }: SaleTag): Pick<Warning, 'code' | 'message'> {
  return { code: 'sale_of_more_items', message: `the line has fewer pieces than tags: the tag ${id} keeps its status` }
}

/** Why goods must not come back at a till: only staff end a hold. */
export function whyHeld(
  { id }: SaleTag,
  item: { status: ItemStatus } | undefined,
): Pick<Warning, 'code' | 'message'> | undefined {
  return item?.status === 'exception_hold'
    ? { code: 'sale_of_held_item', message: `the tag ${id} is exception_hold: keep the goods here` }
    : undefined
}

/** Why a sale leaves a tag as it is; undefined if it makes the tag paid. `isVoided`: a till voided its last sale. */
export function whyDoubtful(
  tag: SaleTag,
  item: { status: ItemStatus; recalled?: true | undefined; voided?: true | undefined } | undefined,
  isVoided: boolean,
): Pick<Warning, 'code' | 'message'> | undefined {
  if (!item) return { code: 'sale_tag_unknown', message: `this agent does not know the tag ${tag.id}` }
  if (item.recalled) return { code: 'sale_of_held_item', message: `the tag ${tag.id} is recalled: keep the goods here` }
  if (item.status === 'paid' || item.status === 'picked_up') return soldBefore(tag)
  // A till rings goods up again after a void. Goods that came back are paid if a till sells them before staff checked them.
  const isRungUpAgain = item.status === 'cancelled' && (isVoided || item.voided === true)
  const mayBeSold = item.status === 'sellable' || item.status === 'returned' || isRungUpAgain
  if (!mayBeSold)
    return { code: 'sale_of_held_item', message: `the tag ${tag.id} is ${item.status}: keep the goods here` }
  return undefined
}
