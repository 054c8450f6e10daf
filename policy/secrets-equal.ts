import { hash, timingSafeEqual } from 'node:crypto'

/**
 * True if both secrets are equal. Compares digests in constant time, so the time reveals neither equal bytes nor the
 * length. Every comparison of secrets, codes and MACs uses this function; `test/house` checks that.
 */
export function secretsEqual(expected: string | Uint8Array, presented: string | Uint8Array | undefined): boolean {
  if (presented === undefined) return false
  return timingSafeEqual(hash('sha256', expected, 'buffer'), hash('sha256', presented, 'buffer'))
}
