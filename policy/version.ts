import { z } from 'zod'

/** Release of untag, the same for cloud and agents (package.json). */
export const UNTAG_VERSION = '0.1.0'

/** A release number such as 1.2.3. */
export const VersionNumber = z
  .string()
  .regex(/^(0|[1-9]\d{0,4})\.(0|[1-9]\d{0,4})\.(0|[1-9]\d{0,4})$/, 'a release as 1.2.3')

/** True if `a` is older than `b`. */
export function isOlderVersion(a: string, b: string): boolean {
  const [ours, theirs] = [a.split('.').map(Number), b.split('.').map(Number)]
  for (const [i, n] of ours.entries()) if (n !== theirs[i]) return n < (theirs[i] ?? 0)
  return false
}
