import { beforeEach, describe, expect, it } from 'vitest'
import { signingClock } from '../../cloud/authority/signing-clock.ts'

const NOW = 1_800_000_000_000

describe('the clock that signs', () => {
  let wall: number
  let elapsed: number
  const clock = { wall: () => wall, elapsed: () => elapsed, bootId: 'boot' }
  const pass = (ms: number) => {
    wall += ms
    elapsed += ms
  }
  beforeEach(() => {
    wall = NOW
    elapsed = 5_000
  })

  it('signs what both clocks agree on', () => {
    const signing = signingClock(clock, 0)
    pass(3_600_000)
    expect(signing.nowMs()).toBe(wall)
    expect(signing.doubt()).toBeNull()
  })

  it('lets the wall clock be set by less than a minute', () => {
    const signing = signingClock(clock, 0)
    wall -= 59_000
    expect(signing.nowMs()).toBe(wall)
  })

  it.each([3_600_000, -3_600_000])('signs nothing after a jump of %d ms until the clocks have agreed for a minute', (jump) => {
    const signing = signingClock(clock, 0)
    wall += jump
    expect(() => signing.nowMs()).toThrow(expect.objectContaining({ code: 'unavailable', extras: { reason: 'clock_untrusted', retryAfter: 60 } }))
    pass(59_999)
    expect(signing.doubt()).toMatch(/jumped/)
    pass(1)
    expect(signing.nowMs()).toBe(wall)
  })

  it('begins the minute anew when the clock jumps again', () => {
    const signing = signingClock(clock, 0)
    wall += 3_600_000
    signing.doubt()
    pass(50_000)
    wall -= 3_600_000
    expect(signing.doubt()).toMatch(/jumped/)
    pass(50_000)
    expect(signing.doubt()).toMatch(/jumped/)
    pass(10_000)
    expect(signing.doubt()).toBeNull()
  })

  it('signs nothing at start while the clock is before the last time that was signed', () => {
    const signing = signingClock(clock, NOW + 10_000)
    expect(signing.doubt()).toMatch(/before the last time/)
    expect(() => signing.nowMs()).toThrow(/nothing is signed now/)
    pass(10_000)
    expect(signing.nowMs()).toBe(NOW + 10_000)
  })
})
