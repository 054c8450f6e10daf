/** What sums of binary fractions may be off by, of the number itself: 0.1 + 0.2 is 0.30000000000000004. */
const NOISE = 1e-12

/** Whether a number has at most so many decimals. What is far below the last of them is not noise: 0.000001 EUR is no 0. */
export function hasDecimals(n: number, places: number): boolean {
  const scale = 10 ** places
  return Math.abs(n - Math.round(n * scale) / scale) <= NOISE * Math.abs(n)
}
