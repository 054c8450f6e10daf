import { describe, expect, test } from 'vitest'
import { kindOf, randomFaults } from './random-faults.ts'
import type { ShiftRelease, RandomFaultOptions } from './random-faults.ts'
import { EXTENDED } from '../support/extended.ts'
import { IS_FULL_SIZE } from '../support/full-size.ts'
import { forEver, workbench } from './workbench.ts'

const TROUBLES: RandomFaultOptions = {
  code: (below) => 1 + below(11),
  mostDelayMs: 1_200,
  mostNoiseBytes: 40,
  functions: [[5], [5], [2], [1, 2, 5]],
  mostTimes: 4,
}

async function shift(framing: 'rtu' | 'tcp', seed: number) {
  const { below, pick, fault } = randomFaults(seed, TROUBLES)
  const times = { pulseMs: pick([200, 700]), requestTimeoutMs: pick([100, 500]), pollMs: pick([20, 100]) }
  const bench = workbench({ seed, door: { framing, ...times, siren: { output: 3 } } })
  const releases: ShiftRelease[] = []
  const ons = () => bench.board.writes.filter((write) => write.coil === 0 && write.on).length
  await bench.untilReady()

  for (let step = 0; step < 40; step++) {
    await bench.world.advance(below(900))
    if (below(3) === 0) bench.port.plug()
    const what = below(10)
    if (what < 4) {
      const from = ons()
      // Runs one release at a time, so that every ON belongs to one release.
      const commandResult = await bench.world.settle(bench.release())
      await bench.world.advance(2_500)
      releases.push({ ons: ons() - from, commandResult })
    } else if (what < 7) bench.board.faults.on(fault())
    else if (what === 7) pick([bench.port.cut, bench.port.unplug, bench.board.restart])()
    else if (what === 8) bench.board.stick(0, pick([true, false, null]))
    else void bench.supervisor.execute('door', { kind: 'signal', signal: 'siren', seconds: below(20) }, forEver())
  }

  bench.board.faults.heal()
  bench.board.stick(0, null)
  bench.port.plug()
  await bench.world.advance(35_000)
  return { bench, releases }
}

/** Runs shifts with the seeds `from` to `to`. Each kind of outcome must occur more than `least` times. */
async function checkShifts(framing: 'rtu' | 'tcp', from: number, to: number, least: number): Promise<void> {
  const outcomes = new Map<string, number>()
  for (let seed = from; seed <= to; seed++) {
    const { bench, releases } = await shift(framing, seed)
    for (const { ons, commandResult } of releases) {
      outcomes.set(kindOf(commandResult), (outcomes.get(kindOf(commandResult)) ?? 0) + 1)
      const where = `seed ${seed}: ${JSON.stringify(commandResult)}`
      expect(ons, where).toBeLessThanOrEqual(commandResult.commanded ? 1 : 0)
      if (commandResult.outcome === 'confirmed') expect(ons, where).toBe(1)
      if (commandResult.outcome !== 'failed') expect(commandResult.commanded, where).toBe(true)
    }
    expect(bench.supervisor.status('door')?.state, `seed ${seed}`).toBe('ready')
    expect(bench.board.coils, `seed ${seed}`).toEqual(Array.from({ length: 8 }, () => false))
    expect(bench.world.pending, `seed ${seed}`).toBeLessThan(20)
    expect((await bench.world.settle(bench.release())).outcome, `seed ${seed}`).toBe('confirmed')
    await bench.world.settle(bench.supervisor.stop())
  }
  // The test must have reached every kind of outcome.
  const failures = ['no_confirmation', 'input_stuck', 'refused', 'not_ready'].map((code) => `failed ${code}`)
  for (const kind of ['confirmed input_changed', 'unknown answer_lost', ...failures]) {
    expect(outcomes.get(kind) ?? 0, kind).toBeGreaterThan(least)
  }
}

describe.each(['tcp', 'rtu'] as const)('a shift with random faults over %s', (framing) => {
  test('switches ON at most once for each release and only if commanded, and ends ready, locked and quiet', () =>
    checkShifts(framing, 1, 8, 0))

  test('and so do many more shifts', EXTENDED, () =>
    // A sample need not reach every kind of outcome; the seeds of the first tier do.
    checkShifts(framing, 9, IS_FULL_SIZE ? 80 : 26, IS_FULL_SIZE ? 2 : -1),
  )
})

describe('a board that answers and executes nothing', () => {
  // 10 and 11: a gateway whose unit has no power. 4 and 6: a board whose relay part failed.
  test.each([4, 6, 10, 11])('is lost after 3 s of exception %i, and ready again when it works', async (code) => {
    const bench = workbench({ door: { passageInput: 4, siren: { output: 5 } } })
    await bench.untilReady()
    bench.board.faults.on({ kind: 'exception', code })
    await bench.until(() => bench.supervisor.status('door')?.state !== 'ready', 5_000)
    expect(bench.supervisor.status('door')?.detail).toMatch(/^unit 1 (executes nothing|refuses to report its inputs): /)
    await bench.world.advance(60_000)
    expect(bench.states.filter(({ state }) => state === 'ready')).toHaveLength(1)
    bench.board.faults.heal()
    await bench.untilReady()
  })

  test('is lost without inputs, too', async () => {
    const bench = workbench({ door: { confirmInput: undefined, siren: { output: 5 } } })
    await bench.untilReady()
    bench.board.faults.on({ kind: 'exception', code: 11 })
    await bench.until(() => bench.supervisor.status('door')?.state !== 'ready', 10_000)
    expect(bench.supervisor.status('door')?.detail).toContain('unit 1 executes nothing: exception 11')
  })

  test('is lost when it refuses to report its inputs only', async () => {
    const bench = workbench({ door: { emergency: { input: 2, wiring: 'normally_open' }, opensInEmergency: true } })
    await bench.untilReady()
    bench.board.faults.on({ kind: 'exception', code: 2, functions: [2] })
    await bench.until(() => bench.supervisor.status('door')?.state !== 'ready', 5_000)
    expect(bench.supervisor.status('door')?.detail).toContain('unit 1 refuses to report its inputs: exception 2')
  })

  test('is not lost while it is busy for a moment', async () => {
    const bench = workbench({ door: { passageInput: 4 } })
    await bench.untilReady()
    bench.board.faults.on({ kind: 'exception', code: 6 })
    await bench.world.advance(2_000)
    bench.board.faults.heal()
    await bench.world.advance(10_000)
    expect(bench.states.map(({ state }) => state)).toEqual(['opening', 'identifying', 'ready'])
  })
})
