import { describe, expect, it } from 'vitest'
import type { SiblingMessage, Siblings } from '../../../../cloud/platform/foundation/ports.ts'
import { sharedRateLimiter } from '../../../../cloud/service/http/rate-limit.ts'
import type { Services } from '../../../../cloud/platform/operations/operation.ts'

/** Workers on one machine, with a clock that `wait` moves. */
function machine(workers: number) {
  let nowMs = 0
  let due: { atMs: number; task: () => void }[] = []
  const handlers: ((message: SiblingMessage) => void)[][] = []
  const platform = {
    clock: { wall: () => nowMs, elapsed: () => nowMs, bootId: 'test' },
    timers: {
      after(ms: number, task: () => void) {
        due.push({ atMs: nowMs + ms, task })
        return () => undefined
      },
    },
  } as Services['platform']
  const limiters = Array.from({ length: workers }, (_, worker) => {
    const own: ((message: SiblingMessage) => void)[] = []
    handlers.push(own)
    const siblings: Siblings = {
      send: (message) => handlers.forEach((list, other) => other !== worker && list.forEach((h) => h(message))),
      subscribe: (handle) => void own.push(handle),
    }
    return sharedRateLimiter('test', { platform, siblings })
  })
  return {
    limiters,
    wait(ms: number) {
      nowMs += ms
      const now = due.filter(({ atMs }) => atMs <= nowMs)
      due = due.filter(({ atMs }) => atMs > nowMs)
      for (const { task } of now) task()
    },
  }
}

const ALLOWANCE = { perSecond: 50, burst: 100 }

describe('rate limits of several workers', () => {
  it('admit as many requests as one worker would over ten seconds, plus those of one message interval', () => {
    const { limiters, wait } = machine(4)
    let admitted = 0
    for (let ms = 0; ms < 10_000; ms += 10) {
      for (const limiter of limiters) if (limiter.take('key', ALLOWANCE).allowed) admitted++
      wait(10)
    }
    // 100 at once and 50 in each second. In 50 ms, four workers send 20 requests.
    expect(admitted).toBeGreaterThanOrEqual(595)
    expect(admitted).toBeLessThanOrEqual(640)
  })

  it('leave other callers alone, and recover', () => {
    const { limiters, wait } = machine(2)
    const [one, two] = limiters
    for (let n = 0; n < 200; n++) one?.take('busy', ALLOWANCE)
    wait(50)
    expect(two?.take('busy', ALLOWANCE).allowed).toBe(false)
    expect(two?.take('quiet', ALLOWANCE)).toMatchObject({ allowed: true, remaining: 99 })
    wait(10_000)
    expect(two?.take('busy', ALLOWANCE)).toMatchObject({ allowed: true, remaining: 99 })
  })
})
