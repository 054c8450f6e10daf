import { virtualPlatform, type VirtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'

/** Virtual time that passes at each turn of the event loop, ms. */
const STEP_MS = 20

/**
 * A platform whose virtual time passes by itself, about 15 times as fast as real time. For tests with real sockets:
 * they get a turn between two steps, and a slow machine slows both down.
 */
export function passingTime(): { platform: VirtualPlatform; stop(): void } {
  const platform = virtualPlatform({ startMs: Date.now() })
  let isRunning = true
  const run = async () => {
    while (isRunning) {
      await new Promise((resolve) => setTimeout(resolve, 1))
      await platform.advance(STEP_MS)
    }
  }
  void run()
  return { platform, stop: () => void (isRunning = false) }
}
