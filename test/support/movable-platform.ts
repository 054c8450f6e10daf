import { realPlatform } from '../../host/platform.ts'
import type { Platform } from '../../policy/platform.ts'

/** The real platform with a clock that a test can move forward. No two times are equal, so that ids are ordered. */
export function movablePlatform(): { platform: Platform; forward(ms: number): void } {
  const real = realPlatform()
  let offset = 0
  const { clock } = real
  return {
    platform: {
      ...real,
      clock: { wall: () => clock.wall() + offset++, elapsed: () => clock.elapsed() + offset, bootId: clock.bootId },
    },
    forward: (ms) => void (offset += ms),
  }
}
