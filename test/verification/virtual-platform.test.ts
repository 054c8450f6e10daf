import { describe, expect, it } from 'vitest'
import { virtualPlatform } from './simulation/virtual/virtual-platform.ts'

describe('virtual time', () => {
  it('never goes back after a sleep, and runs overdue timers with the next advance', async () => {
    const platform = virtualPlatform()
    const startMs = platform.clock.elapsed()
    let ran = 0
    platform.timers.after(240_000, () => void ran++)
    const moved = platform.advance(1_000)
    platform.sleep(300_000)
    await moved
    expect([platform.clock.elapsed() - startMs, ran]).toEqual([300_000, 0])
    await platform.advance(1_000)
    expect([platform.clock.elapsed() - startMs, ran]).toEqual([301_000, 1])
  })
})
