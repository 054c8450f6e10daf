/** Tolerated relative error, because sums of binary fractions are inexact: 0.1 + 0.2 is 0.30000000000000004. */
const NOISE = 1e-12

/** True if `n` has at most `places` decimals. Does not round a tiny amount to 0: 0.000001 has 6 decimals. */
export function hasDecimals(n: number, places: number): boolean {
  const scale = 10 ** places
  return Math.abs(n - Math.round(n * scale) / scale) <= NOISE * Math.abs(n)
}

/**
 * Pieces or kg that are left of `sold` after `gone` came back. Parts of weighed goods are rounded: the sum of their
 * binary fractions may differ a little from the whole.
 */
export function piecesLeft(sold: number, gone: number | undefined): number {
  return Math.round((sold - (gone ?? 0)) * 1e9) / 1e9
}
