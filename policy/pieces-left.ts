/**
 * Pieces or kg that are left of `sold` after `gone` came back. Parts of weighed goods are rounded: the sum of their
 * binary fractions may differ a little from the whole.
 */
export function piecesLeft(sold: number, gone: number | undefined): number {
  return Math.round((sold - (gone ?? 0)) * 1e9) / 1e9
}
