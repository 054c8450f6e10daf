import { hash } from 'node:crypto'
import { pieceCountOf, type ItemOfTag } from './cancelled-lines.ts'
import { cancelledProducts, gtinOfLine, isSoldLine, lineCentOf, tagsOf, type TillSale } from './till-sale.ts'

/** Pieces that tills sold without naming their tags, for which tags of the same product may pass (ADR till-sales). */

/** Maximum pieces of one product of a sale for which tags may pass. */
export const SOLD_PIECES_LIMIT = 100

/** Hash of a product in its store, 16 bytes in hex. */
export function productHash(storeId: string, gtin14: string): string {
  return hash('sha256', JSON.stringify(['untag/product/1', storeId, gtin14]), 'hex').slice(0, 32)
}

/**
 * Pieces that a sale sells without naming their tags, by GTIN-14. A line that takes goods back lowers the pieces of its
 * product (`cancelledProducts`), and a product that costs nothing after its discounts has none. If a line that takes goods
 * back names no GTIN, it may have taken back any product, so the sale has no pieces. Weighed goods are no pieces.
 */
export function piecesWithoutTag(sale: Pick<TillSale, 'lines'>, itemOf?: ItemOfTag): Map<string, number> {
  const pieces = new Map<string, number>()
  const centOf = new Map<string, number>()
  const discounted = new Set<string>()
  const isCancelled = cancelledProducts(sale)
  for (const line of sale.lines) {
    const gtin = gtinOfLine(line)
    const isBack = isCancelled(line)
    if (gtin !== undefined) centOf.set(gtin, (centOf.get(gtin) ?? 0) + lineCentOf(line))
    if (!isBack && !isSoldLine(line)) {
      if (gtin !== undefined) discounted.add(gtin)
      continue
    }
    const unnamed = Math.max(0, Math.abs(line.quantity) - pieceCountOf(tagsOf(line), itemOf))
    if (isBack && gtin === undefined && unnamed > 0) return new Map()
    if (gtin === undefined || (!isBack && !Number.isInteger(line.quantity))) continue
    pieces.set(gtin, (pieces.get(gtin) ?? 0) + (isBack ? -Math.ceil(unnamed) : unnamed))
  }
  const isFree = (gtin: string) => discounted.has(gtin) && (centOf.get(gtin) ?? 0) <= 0
  const left = [...pieces].filter(([gtin, count]) => count > 0 && !isFree(gtin))
  return new Map(left.map(([gtin, count]) => [gtin, Math.min(count, SOLD_PIECES_LIMIT)]))
}
