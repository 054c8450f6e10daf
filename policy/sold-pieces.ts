import { hash } from 'node:crypto'
import { pieceCountOf, type ItemOfTag } from './cancelled-lines.ts'
import { gtinOfLine, isSoldLine, tagsOf, takesBack, type TillSale } from './till-sale.ts'

/** Pieces that tills sold without naming their tags, for which tags of the same product may pass (ADR till-sales). */

/** Maximum pieces of one product of a sale for which tags may pass. */
export const SOLD_PIECES_LIMIT = 100

/** Hash of a product in its store, 16 bytes in hex. */
export function productHash(storeId: string, gtin14: string): string {
  return hash('sha256', JSON.stringify(['untag/product/1', storeId, gtin14]), 'hex').slice(0, 32)
}

/**
 * Pieces that a sale sells without naming their tags, by GTIN-14. A line that takes goods back lowers the pieces of its
 * product, at any price. If it names no GTIN, it may have taken back any product, so the sale has no pieces. Weighed goods
 * are no pieces.
 */
export function piecesWithoutTag({ lines }: Pick<TillSale, 'lines'>, itemOf?: ItemOfTag): Map<string, number> {
  const pieces = new Map<string, number>()
  for (const line of lines) {
    const gtin = gtinOfLine(line)
    // Some tills cancel a piece by a negative price. A discount or empties without a product say nothing of one.
    const isBack = takesBack(line) || (!isSoldLine(line) && gtin !== undefined)
    if (!isBack && !isSoldLine(line)) continue
    const unnamed = Math.max(0, Math.abs(line.quantity) - pieceCountOf(tagsOf(line), itemOf))
    if (isBack && gtin === undefined && unnamed > 0) return new Map()
    if (gtin === undefined || (!isBack && !Number.isInteger(line.quantity))) continue
    pieces.set(gtin, (pieces.get(gtin) ?? 0) + (isBack ? -Math.ceil(unnamed) : unnamed))
  }
  const left = [...pieces].filter(([, count]) => count > 0)
  return new Map(left.map(([gtin, count]) => [gtin, Math.min(count, SOLD_PIECES_LIMIT)]))
}
