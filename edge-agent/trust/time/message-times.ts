/** The times of a message that is signed at `nowMs`: issued and expiry, s. */
export function messageTimes(nowMs: number, lifeS: number): { iat: number; exp: number } {
  const iat = Math.max(0, Math.floor(nowMs / 1_000))
  return { iat, exp: iat + lifeS }
}
