import { hash, timingSafeEqual } from 'node:crypto'

/**
 * True if both secrets are equal. The time it takes tells neither how many bytes are equal nor how long the known secret is,
 * because digests are compared. Every comparison of secrets, codes and MACs goes through here; `test/house` checks that.
 */
export function secretsEqual(expected: string | Uint8Array, presented: string | Uint8Array | undefined): boolean {
  if (presented === undefined) return false
  return timingSafeEqual(hash('sha256', expected, 'buffer'), hash('sha256', presented, 'buffer'))
}
