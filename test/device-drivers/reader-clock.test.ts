import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readerClock } from '../../device-drivers/llrp/reader-clock.ts'

/** Age up to which a gate sounds the siren, ms. */
const LATE_MS = 2_000
const WALL = 1_700_000_000_000

/** A clock that the test moves, and a reader's clock that is `behindMs` behind it. */
function bench(behindMs: number) {
  let now = 1_000_000
  const clock = { elapsed: () => now, wall: () => WALL + now, bootId: 'b' }
  const reader = readerClock(clock)
  reader.set({ utcUs: clock.wall() * 1_000 })
  return {
    /** Receives a message at `atMs` with reads of the times `seenMs`. Returns the lateness of each read, ms. */
    receive(atMs: number, seenMs: readonly number[]): number[] {
      now = 1_000_000 + atMs
      return seenMs.map((seen) => now - reader.seenAt({ utcUs: (WALL + 1_000_000 + seen - behindMs) * 1_000 }))
    },
  }
}

const every = (stepMs: number, fromMs: number, toMs: number) =>
  Array.from({ length: Math.max(0, Math.ceil((toMs - fromMs) / stepMs)) }, (_, n) => fromMs + n * stepMs)

describe('the clock of a reader', () => {
  it.each([
    [3_000, 100],
    [3_000, 900],
    [3_000, 1_200],
    [3_000, 1_900],
    [60_000, 1_500],
    [4 * 3_600_000, 1_000],
  ])(
    'corrects a clock that is %i ms behind, with batches of %i ms, within four seconds or five batches',
    (behindMs, batchMs) => {
      const { receive } = bench(behindMs)
      const late = every(batchMs, batchMs, 120_000).flatMap((atMs) =>
        receive(atMs, every(100, atMs - batchMs, atMs)).map((ms) => ({ atMs, ms })),
      )
      expect(late[0]?.ms).toBeGreaterThan(LATE_MS)
      expect(late.filter(({ atMs, ms }) => atMs > Math.max(4_000, 5 * batchMs) && ms > LATE_MS)).toEqual([])
    },
  )

  it('corrects a slow clock also with few and irregular reads', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 2_100, max: 1e7 }),
        fc.array(fc.integer({ min: 50, max: 900 }), { minLength: 200, maxLength: 200 }),
        (behindMs, gaps) => {
          const { receive } = bench(behindMs)
          const batchMs = 1_200
          let seen = 0
          const reads = gaps.map((gap) => (seen += gap))
          const late = every(batchMs, batchMs, seen).flatMap((atMs) =>
            receive(
              atMs,
              reads.filter((ms) => ms > atMs - batchMs && ms <= atMs),
            ).map((ms) => ({ atMs, ms })),
          )
          expect(late.filter(({ atMs, ms }) => atMs > 60_000 && ms > LATE_MS)).toEqual([])
        },
      ),
    )
  })

  it('never makes buffered reads young during a fast replay, and recognises the live ones afterwards', () => {
    const outage = fc.record({
      awayMs: fc.integer({ min: 5_000, max: 20_000 }),
      speed: fc.double({ min: 1.2, max: 60, noNaN: true }),
      batchMs: fc.integer({ min: 50, max: 1_000 }),
      readEveryMs: fc.integer({ min: 20, max: 400 }),
      behindMs: fc.constantFrom(0, -4_000, 20),
      isNew: fc.boolean(),
    })
    fc.assert(
      fc.property(outage, ({ awayMs, speed, batchMs, readEveryMs, behindMs, isNew }) => {
        const { receive } = bench(behindMs)
        const from = isNew ? 0 : 30_000
        for (const atMs of every(batchMs, batchMs, from)) receive(atMs, every(readEveryMs, atMs - batchMs, atMs))
        // Cuts the network; then the buffered reads arrive in order, `speed` times as fast as they were made.
        const young: number[][] = []
        let reportedMs = from
        let atMs = from + awayMs
        for (let isBehind = true; isBehind; atMs += batchMs) {
          const until = Math.min(atMs, reportedMs + batchMs * speed)
          const seen = every(readEveryMs, reportedMs, until)
          receive(atMs, seen).forEach((ms, n) => {
            const age = atMs - (seen[n] ?? 0)
            // The first fresh read shows that the clock is ahead.
            if (age > LATE_MS + 500 && behindMs >= 0 && ms <= LATE_MS) young.push([age, ms])
          })
          reportedMs = until
          isBehind = reportedMs < atMs
        }
        expect(young).toEqual([])
        const after = every(batchMs, atMs, atMs + 5_000).flatMap((at) => receive(at, [at - 20]))
        expect(after.filter((ms) => ms > LATE_MS)).toEqual([])
      }),
      { numRuns: 200 },
    )
  })

  it('is not corrected by reads that wait longer and longer, or were all made at once', () => {
    const { receive } = bench(0)
    for (const atMs of every(200, 200, 60_000)) receive(atMs, [atMs])
    const once = every(50, 65_000, 95_000).flatMap((atMs) => receive(atMs, [60_000]).map((ms) => [atMs - 60_000, ms]))
    expect(once.filter(([age = 0, ms = 0]) => age - ms > 100)).toEqual([])
  })
})
