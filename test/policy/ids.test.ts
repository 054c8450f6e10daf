import fc from 'fast-check'
import { stringify, validate, version } from 'uuid'
import { describe, expect, it } from 'vitest'
import { crockford } from '../../policy/base32.ts'
import { isIdOf, newId } from '../../policy/ids.ts'
import type { Clock, Randomness } from '../../policy/platform.ts'
import { seededRandom } from '../verification/simulation/virtual/virtual-platform.ts'

const LAST_MS = 2 ** 48 - 1
const ms = fc.integer({ min: 0, max: LAST_MS })

function platformAt(startMs: number, random: Randomness = seededRandom(1)) {
  const state = { ms: startMs }
  const clock: Clock = { wall: () => state.ms, elapsed: () => 0, bootId: 'boot' }
  return { state, platform: { clock, random } }
}

/** The UUID that an id prints. */
function uuidOf(id: string): Uint8Array {
  const bytes = crockford.decode(id.slice(id.indexOf('_') + 1))
  if (!bytes) throw new Error(`${id} is no Crockford Base32`)
  return bytes
}
const timeOf = (id: string) => Buffer.from(uuidOf(id)).readUIntBE(0, 6)
const isAscending = (ids: readonly string[]) => ids.every((id, n) => n === 0 || (ids[n - 1] ?? '') < id)

describe('newId', () => {
  it('prints the prefix and 26 Crockford characters of a UUID version 7 with the time', () => {
    fc.assert(
      fc.property(ms, fc.integer(), (at, seed) => {
        const id = newId('pur', platformAt(at, seededRandom(seed)).platform)
        expect(id).toMatch(/^pur_[0-9A-HJKMNP-TV-Z]{26}$/)
        expect(isIdOf('pur', id)).toBe(true)
        const text = stringify(uuidOf(id))
        expect([validate(text), version(text), timeOf(id)]).toEqual([true, 7, at])
      }),
    )
  })

  it('keeps ids of one millisecond in order with any random bytes', () => {
    fc.assert(
      fc.property(ms, fc.array(fc.uint8Array({ minLength: 10, maxLength: 10 }), { minLength: 2 }), (at, chances) => {
        let n = 0
        const random = { bytes: () => chances[n++] ?? new Uint8Array(10) }
        const { platform } = platformAt(at, random)
        expect(isAscending(chances.map(() => newId('evt', platform)))).toBe(true)
      }),
    )
  })

  it('keeps the order of time, fractions of a millisecond included, and repeats no id', () => {
    fc.assert(
      fc.property(ms, fc.integer(), fc.array(fc.constantFrom(0, 0, 0.25, 1, 1_000)), (at, seed, steps) => {
        const { platform, state } = platformAt(Math.min(at, LAST_MS - 1e6), seededRandom(seed))
        const ids = steps.map((step) => {
          state.ms += step
          return newId('evt', platform)
        })
        expect(isAscending(ids)).toBe(true)
      }),
    )
  })

  it('uses the time of a clock that was set back, and repeats no id when that time recurs', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -3, max: 3 })), fc.integer(), (steps, seed) => {
        const { platform, state } = platformAt(1_800_000_000_000, seededRandom(seed))
        const ids = steps.map((step) => {
          state.ms += step
          const id = newId('evt', platform)
          expect(timeOf(id)).toBe(state.ms)
          return id
        })
        expect(new Set(ids).size).toBe(ids.length)
      }),
    )
  })

  it('writes 1970 for an earlier clock', () => {
    expect(timeOf(newId('evt', platformAt(-5).platform))).toBe(0)
  })

  it('makes the same ids from the same time and randomness, independent of other clocks of the process', () => {
    const [one, other] = [platformAt(5), platformAt(5)]
    const first = Array.from({ length: 10 }, () => newId('evt', one.platform))
    expect(Array.from({ length: 10 }, () => newId('evt', other.platform))).toEqual(first)
  })

  it('draws new random bits for each id of one millisecond', () => {
    const { platform } = platformAt(5)
    const tails = Array.from({ length: 1_000 }, () => newId('evt', platform).slice(-9))
    expect(new Set(tails).size).toBe(1_000)
  })
})
