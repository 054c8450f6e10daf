import { describe, expect, test } from 'vitest'
import { MESSAGES } from '../../device-drivers/llrp/protocol/messages.ts'
import { gateBench } from './gate-bench.ts'
import { kindOf, randomFaults } from './random-faults.ts'
import type { ShiftRelease, RandomFaultOptions } from './random-faults.ts'
import { RELEASE } from './workbench.ts'

const SET = MESSAGES.SET_READER_CONFIG.type

const TROUBLES: RandomFaultOptions = {
  code: () => 401,
  mostDelayMs: 4_000,
  mostNoiseBytes: 80,
  functions: [[SET], [SET], [MESSAGES.ADD_ROSPEC.type], undefined],
  mostTimes: 3,
}

/** The n-th tag of a shift. The reader reads each tag once, so the test detects lost and doubled reads. */
const epcOf = (n: number) => `3034F4E4E4${n.toString(16).toUpperCase().padStart(14, '0')}`

async function shift(seed: number) {
  const { random, below, pick, fault } = randomFaults(seed, TROUBLES)
  const clockAheadMs = pick([0, 0, -7_200_000, 86_400_000])
  const hasClock = below(4) > 0
  const bench = gateBench({
    seed,
    gate: { release: { gpo: 3, pulseMs: pick([200, 900]) }, passageInput: 1 },
    reader: { clockAheadMs, hasClock },
  })
  const releases: ShiftRelease[] = []
  const seenAt = new Map<string, number>()
  const ons = () => bench.reader.writes.filter(({ gpo, on }) => gpo === 3 && on).length
  await bench.untilReady()

  for (let step = 0; step < 40; step++) {
    await bench.world.advance(below(1_500))
    if (below(3) === 0) bench.port.plug()
    if (below(4) === 0) bench.reader.occupy(false)
    if (below(4) === 0) bench.reader.hang(false)
    if (bench.reader.isReading) {
      const epc = epcOf(step)
      seenAt.set(epc, bench.world.clock.elapsed())
      bench.reader.see(epc, { antenna: 1 + below(2) })
    }
    const what = below(12)
    if (what < 4) {
      const from = ons()
      // Runs one release at a time, so that every ON belongs to one release.
      const commandResult = await bench.world.settle(bench.execute(RELEASE))
      await bench.world.advance(4_000)
      releases.push({ ons: ons() - from, commandResult })
    } else if (what < 7) bench.reader.faults.on(fault())
    else if (what === 7) pick([bench.port.cut, bench.port.unplug])()
    else if (what === 8) pick([bench.reader.reboot, () => bench.reader.hang(true), () => bench.reader.occupy(true)])()
    else if (what === 9) bench.reader.garbage(random.bytes(1 + below(200)))
    else void bench.siren(below(20))
  }

  bench.reader.faults.heal()
  bench.reader.hang(false)
  bench.reader.occupy(false)
  bench.port.plug()
  await bench.world.advance(60_000)
  return { bench, releases, seenAt }
}

describe('a shift with random faults at the gate', () => {
  test('switches ON at most once for each release, reports each read once with its true time, and ends ready and quiet', async () => {
    const outcomes = new Map<string, number>()
    let reads = 0
    for (let seed = 1; seed <= 80; seed++) {
      const { bench, releases, seenAt } = await shift(seed)
      for (const { ons, commandResult } of releases) {
        outcomes.set(kindOf(commandResult), (outcomes.get(kindOf(commandResult)) ?? 0) + 1)
        const where = `seed ${seed}: ${JSON.stringify(commandResult)}`
        expect(ons, where).toBeLessThanOrEqual(commandResult.commanded ? 1 : 0)
        if (commandResult.outcome === 'confirmed') expect(ons, where).toBe(1)
        if (commandResult.outcome !== 'failed') expect(commandResult.commanded, where).toBe(true)
      }
      const names = bench.reads().map(({ tag }) => ('epc' in tag ? tag.epc : ''))
      expect(new Set(names).size, `seed ${seed}`).toBe(names.length)
      for (const { tag, seenAtMs } of bench.reads()) {
        const trueMs = seenAt.get('epc' in tag ? tag.epc : '') ?? Number.NaN
        expect(Math.abs(seenAtMs - trueMs), `seed ${seed}`).toBeLessThan(20)
      }
      reads += names.length
      expect(bench.state().state, `seed ${seed}: ${bench.state().detail}`).toBe('ready')
      expect(bench.reader.gpos, `seed ${seed}`).toEqual([false, false, false, false, false])
      expect(bench.reader.isReading, `seed ${seed}`).toBe(true)
      expect(bench.world.pending, `seed ${seed}`).toBeLessThan(20)
      expect((await bench.world.settle(bench.execute(RELEASE))).outcome, `seed ${seed}`).toBe('confirmed')
      await bench.world.settle(bench.supervisor.stop())
    }
    // The test must have reached every kind of outcome.
    for (const kind of ['confirmed acknowledged', 'unknown answer_lost', 'failed refused', 'failed not_ready']) {
      expect(outcomes.get(kind) ?? 0, kind).toBeGreaterThan(2)
    }
    expect(reads).toBeGreaterThan(1_000)
  })
})
