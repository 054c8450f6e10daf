/** When a message that is signed now was made, and when it ends, s. */
export function messageTimes(nowMs: number, lifeS: number): { iat: number; exp: number } {
  const iat = Math.max(0, Math.floor(nowMs / 1_000))
  return { iat, exp: iat + lifeS }
}
