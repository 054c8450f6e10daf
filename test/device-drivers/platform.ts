import { randomBytes } from 'node:crypto'
import type { Platform } from '../../policy/platform.ts'

/** Real time, for tests of real I/O. */
export const realPlatform: Platform = {
  clock: { wall: () => Date.now(), elapsed: () => performance.now(), bootId: 'test' },
  timers: {
    after(ms, task) {
      const timer = setTimeout(task, ms)
      return () => clearTimeout(timer)
    },
  },
  random: { bytes: (length) => randomBytes(length) },
}
