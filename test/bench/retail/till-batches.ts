import { benchProduct } from '../catalogue/products.ts'

/** Lines of a sale, each with one tagged piece. */
export const LINES = 3
/** Products of the shop. */
export const PRODUCTS = 1_000
/** Tills of the shop, so that no till reaches its limit of sales in an hour. */
const TILLS = 100

/** EPC of a piece, from 0. It contains no GTIN. */
export const epcOfPiece = (piece: number) => `E280${(piece + 1).toString(16).toUpperCase().padStart(20, '0')}`
/** Product of a piece. */
export const productOfPiece = (piece: number) => benchProduct(piece % PRODUCTS)

/** Body of `recordSales` with the sales `from` to `from + count - 1`. Sale `n` sells the pieces from `n * LINES`. */
export function batchOfSales(storeId: string, from: number, count: number, atMs: number): string {
  const sales = Array.from({ length: count }, (_, i) => {
    const lines = Array.from({ length: LINES }, (__, n) => {
      const piece = (from + i) * LINES + n
      const { ean, price, vat } = productOfPiece(piece)
      return { ean, quantity: 1, priceUnit: Math.round(price * 100), vat, epcs: [epcOfPiece(piece)] }
    })
    return {
      saleId: String(from + i),
      tillId: `till-${(from + i) % TILLS}`,
      series: 'Z-1',
      occurredAt: new Date(atMs).toISOString(),
      totalCent: lines.reduce((sum, { priceUnit }) => sum + priceUnit, 0),
      lines,
    }
  })
  return JSON.stringify({ storeId, sales })
}
