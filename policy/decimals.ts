/** Relative error of sums of binary fractions: 0.1 + 0.2 is 0.30000000000000004. */
const NOISE = 1e-12

/** True if `n` has at most `places` decimals. Tiny amounts count: 0.000001 EUR is not 0. */
export function hasDecimals(n: number, places: number): boolean {
  const scale = 10 ** places
  return Math.abs(n - Math.round(n * scale) / scale) <= NOISE * Math.abs(n)
}
