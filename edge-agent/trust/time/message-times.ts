/** Returns issue time and expiry, s, of a message that the agent signs at `nowMs`. */
export function messageTimes(nowMs: number, lifeS: number): { iat: number; exp: number } {
  const iat = Math.max(0, Math.floor(nowMs / 1_000))
  return { iat, exp: iat + lifeS }
}
