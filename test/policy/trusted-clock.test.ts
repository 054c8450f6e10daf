import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  resumeAfterBoot,
  applySignedTime,
  startTrustedClock,
  trustedNow,
  type TrustedClockState,
} from '../../policy/trusted-clock.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'

const START = Date.UTC(2026, 10, 20, 9)
const MINUTE = 60_000
const fresh = (ms: number) => ({ ms, epoch: 0, answersChallenge: false })
const answer = (ms: number) => ({ ms, epoch: 0, answersChallenge: true })

function started() {
  const world = virtualPlatform({ startMs: START })
  return { world, state: startTrustedClock(answer(START), world.clock) }
}

describe('the trusted clock', () => {
  it('follows elapsed time and ignores the wall clock', async () => {
    const { world, state } = started()
    await world.advance(MINUTE)
    world.setWall(START - 10 * 365 * 86_400_000)
    expect(trustedNow(state, world.clock)).toEqual({ nowMs: START + MINUTE, trust: 'signed' })
    world.setWall(START + 5 * 365 * 86_400_000)
    expect(trustedNow(state, world.clock).nowMs).toBe(START + MINUTE)
  })

  it('is set back only by the response to its challenge, not by an old signed time', async () => {
    const { world, state } = started()
    await world.advance(MINUTE)
    const late = applySignedTime(state, world.clock, fresh(START + 10_000))
    expect(trustedNow(late.state, world.clock).nowMs).toBe(START + MINUTE)
    const answered = applySignedTime(late.state, world.clock, answer(START + MINUTE - 2_000))
    expect(trustedNow(answered.state, world.clock).nowMs).toBe(START + MINUTE - 2_000)
  })

  it('never falls below the high-water mark', async () => {
    const { world, state } = started()
    const marked = applySignedTime(state, world.clock, fresh(START + 5 * MINUTE)).state
    expect(applySignedTime(marked, world.clock, answer(START + 4 * MINUTE)).verdict).toBe('ignored')
    expect(trustedNow(marked, world.clock).nowMs).toBe(START + 5 * MINUTE)
  })

  it('accepts a step of over ten minutes only after a second response a minute later', async () => {
    const { world, state } = started()
    const hour = 60 * MINUTE
    const first = applySignedTime(state, world.clock, fresh(START + hour))
    expect(first.verdict).toBe('unconfirmed')
    expect(trustedNow(first.state, world.clock)).toEqual({ nowMs: START, trust: 'none' })
    await world.advance(59_000)
    const soon = applySignedTime(first.state, world.clock, fresh(START + hour + 59_000))
    expect(soon.verdict).toBe('unconfirmed')
    await world.advance(1_000)
    const second = applySignedTime(soon.state, world.clock, fresh(START + hour + MINUTE))
    expect(second.verdict).toBe('accepted')
    expect(trustedNow(second.state, world.clock)).toEqual({ nowMs: START + hour + MINUTE, trust: 'signed' })
  })

  it('discards the unconfirmed time if the next response agrees with the clock', async () => {
    const { world, state } = started()
    const unconfirmed = applySignedTime(state, world.clock, fresh(START + 86_400_000)).state
    await world.advance(1_000)
    const honest = applySignedTime(unconfirmed, world.clock, fresh(START + 1_000))
    expect(honest.verdict).toBe('accepted')
    expect(trustedNow(honest.state, world.clock).trust).toBe('signed')
  })

  it('stays untrusted while only replays of old documents arrive', async () => {
    const { world, state } = started()
    await world.advance(10 * MINUTE)
    // The real time is an hour later. A hostile broker replays a document from five minutes after the start.
    const { state: unconfirmed, verdict } = applySignedTime(state, world.clock, fresh(START + 70 * MINUTE))
    expect([verdict, trustedNow(unconfirmed, world.clock).trust]).toEqual(['unconfirmed', 'none'])
    const old = applySignedTime(unconfirmed, world.clock, fresh(START + 5 * MINUTE))
    expect(trustedNow(old.state, world.clock)).toEqual({ nowMs: START + 10 * MINUTE, trust: 'none' })
    await world.advance(MINUTE)
    const second = applySignedTime(old.state, world.clock, fresh(START + 71 * MINUTE))
    expect([second.verdict, trustedNow(second.state, world.clock)]).toEqual([
      'accepted',
      { nowMs: START + 71 * MINUTE, trust: 'signed' },
    ])
    // A current document arrives with a small delay.
    const honest = applySignedTime(old.state, world.clock, fresh(START + 11 * MINUTE - 300))
    expect(trustedNow(honest.state, world.clock).trust).toBe('signed')
  })

  it('starts the wait again if the second response has another time', async () => {
    const { world, state } = started()
    const unconfirmed = applySignedTime(state, world.clock, fresh(START + 60 * MINUTE)).state
    await world.advance(2 * MINUTE)
    expect(applySignedTime(unconfirmed, world.clock, fresh(START + 600 * MINUTE)).verdict).toBe('unconfirmed')
  })

  it('uses the real-time clock after a reboot only if it is at or past the mark', async () => {
    const { world, state } = started()
    world.reboot()
    expect(trustedNow(state, world.clock).trust).toBe('none')
    world.setWall(START + 30 * MINUTE)
    expect(trustedNow(resumeAfterBoot(state, world.clock), world.clock)).toEqual({
      nowMs: START + 30 * MINUTE,
      trust: 'rtc',
    })
    world.setWall(0)
    expect(trustedNow(resumeAfterBoot(state, world.clock), world.clock)).toEqual({ nowMs: START, trust: 'none' })
  })

  it('is confirmed after a reboot by a document of the same time or later, or by the response to its challenge, not by an older document', async () => {
    const { world, state } = started()
    world.reboot()
    world.setWall(START + 1_440 * MINUTE)
    const booted = resumeAfterBoot(state, world.clock)
    const received = applySignedTime(booted, world.clock, fresh(START + MINUTE))
    expect(received).toMatchObject({ verdict: 'accepted', state: { highWaterMs: START + MINUTE } })
    expect(trustedNow(received.state, world.clock)).toEqual({ nowMs: START + 1_440 * MINUTE, trust: 'rtc' })
    expect(
      trustedNow(applySignedTime(received.state, world.clock, fresh(START + 1_441 * MINUTE)).state, world.clock).trust,
    ).toBe('signed')
    const answered = applySignedTime(received.state, world.clock, answer(START + 2 * MINUTE))
    expect(trustedNow(answered.state, world.clock)).toEqual({ nowMs: START + 2 * MINUTE, trust: 'signed' })
  })

  it('is lowered only by a new time epoch', () => {
    const { world, state } = started()
    const tooHigh = startTrustedClock(answer(START + 1e12), world.clock)
    expect(applySignedTime(tooHigh, world.clock, answer(START)).verdict).toBe('ignored')
    const lowered = applySignedTime(tooHigh, world.clock, { ms: START, epoch: 1, answersChallenge: true })
    expect(trustedNow(lowered.state, world.clock).nowMs).toBe(START)
    expect(applySignedTime(lowered.state, world.clock, answer(START + 1e12)).verdict).toBe('ignored')
    expect(state.epoch).toBe(0)
    // A document may be a replay: it can start the epoch but not lower the mark.
    expect(applySignedTime(tooHigh, world.clock, { ms: START, epoch: 1, answersChallenge: false }).verdict).toBe(
      'ignored',
    )
    const fromDocument = applySignedTime(state, world.clock, { ms: START + 1_000, epoch: 1, answersChallenge: false })
    expect([fromDocument.verdict, fromDocument.state.epoch, trustedNow(fromDocument.state, world.clock).nowMs]).toEqual(
      ['accepted', 1, START + 1_000],
    )
  })

  it('never falls below the signed time, and never exceeds it by more than the elapsed time', async () => {
    const step = fc.record({
      pass: fc.integer({ min: 0, max: 3_600_000 }),
      lie: fc.integer({ min: -7_200_000, max: 7_200_000 }),
      answered: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const { world, state: first } = started()
        let state: TrustedClockState = first
        for (const { pass, lie, answered } of steps) {
          await world.advance(pass)
          state = applySignedTime(state, world.clock, {
            ms: Math.max(0, trustedNow(state, world.clock).nowMs + lie),
            epoch: 0,
            answersChallenge: answered,
          }).state
          expect(trustedNow(state, world.clock).nowMs).toBeGreaterThanOrEqual(state.highWaterMs)
        }
      }),
      { numRuns: 200 },
    )
  })
})
