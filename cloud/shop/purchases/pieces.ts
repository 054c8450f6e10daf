import type { RefundRow } from '../../platform/persistence/tables/payments.ts'
import type { PurchaseLineRow } from '../../platform/persistence/tables/purchases.ts'

/** Pieces of one line that came back. A refund stores a JSON array of them. */
export interface Pieces {
  readonly itemLineId: string
  readonly quantity: number
  /** Numbers of the tagged pieces among them (`purchase_unit.unit_no`). */
  readonly unitNos: readonly number[]
}

/** Pieces that a refund names; empty if it names none. */
export function piecesOf({ lines }: Pick<RefundRow, 'lines'>): Pieces[] {
  return lines === null ? [] : (JSON.parse(lines) as Pieces[])
}

/** Sums pieces by line. */
export function sumPieces(pieces: readonly Pieces[]): Map<string, Pieces> {
  const sums = new Map<string, Pieces>()
  for (const { itemLineId, quantity, unitNos } of pieces) {
    const known = sums.get(itemLineId)
    sums.set(itemLineId, {
      itemLineId,
      quantity: quantity + (known?.quantity ?? 0),
      unitNos: [...(known?.unitNos ?? []), ...unitNos],
    })
  }
  return sums
}

/** The form of the API: without the numbers of tagged pieces. */
export function toReturnedLines(refund: Pick<RefundRow, 'lines'>): { itemLineId: string; quantity: number }[] {
  return piecesOf(refund).map(({ itemLineId, quantity }) => ({ itemLineId, quantity }))
}

/**
 * Amount paid for `count` pieces of a line after `before` other pieces came back, cents. The pieces of a line differ by
 * at most one cent, and the dearer ones come back first. So the amounts of all pieces add up to the line.
 */
export function paidForPieces(paidCent: number, quantity: number, before: number, count: number): number {
  const low = Math.floor(paidCent / quantity)
  const dearer = paidCent - low * quantity
  const upTo = (pieces: number) => pieces * low + Math.min(pieces, dearer)
  return upTo(before + count) - upTo(before)
}

/**
 * Amount paid for these pieces by line, cents. `paid`: amounts of whole lines. `gone`: pieces that came back before.
 */
export function amountsOfPieces(
  pieces: readonly Pieces[],
  lines: readonly Pick<PurchaseLineRow, 'line_id' | 'quantity' | 'vat'>[],
  paid: ReadonlyMap<string, number>,
  gone: ReadonlyMap<string, Pieces>,
): { lineId: string; rate: number; cent: number }[] {
  return pieces.flatMap(({ itemLineId: lineId, quantity }) => {
    const line = lines.find((each) => each.line_id === lineId)
    if (!line) return []
    const cent = paidForPieces(paid.get(lineId) ?? 0, line.quantity, gone.get(lineId)?.quantity ?? 0, quantity)
    return [{ lineId, rate: line.vat, cent }]
  })
}
