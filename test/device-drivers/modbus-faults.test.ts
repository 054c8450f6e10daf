import { describe, expect, test } from 'vitest'
import { fraction } from '../../policy/platform.ts'
import type { CommandResult } from '../../device-drivers/drivers/device.ts'
import type { Fault } from '../../simulators/devices/faults.ts'
import { seededRandom } from '../../simulators/world/virtual-platform.ts'
import { forEver, workbench } from './workbench.ts'

/** Random troubles, the same for the same seed. */
function troubles(seed: number) {
  const random = seededRandom(seed)
  const below = (n: number) => Math.floor(fraction(random) * n)
  const pick = <T>(list: readonly T[]): T => list[below(list.length)] as T
  const fault = (): Fault => {
    const kinds: Fault[] = [
      { kind: 'mute' },
      { kind: 'dead' },
      { kind: 'garble' },
      { kind: 'cut-before-answer' },
      { kind: 'cut-after-answer' },
      { kind: 'exception', code: 1 + below(11) },
      { kind: 'delay', ms: below(1_200) },
      { kind: 'noise', bytes: random.bytes(1 + below(40)) },
    ]
    const functions = pick([[5], [5], [2], [1, 2, 5]])
    return { ...pick(kinds), functions, after: below(2), times: 1 + below(4) }
  }
  return { below, pick, fault }
}

interface Told {
  readonly from: number
  readonly to: number
  readonly told: CommandResult
}

async function shift(framing: 'rtu' | 'tcp', seed: number) {
  const { below, pick, fault } = troubles(seed)
  const times = { pulseMs: pick([200, 700]), requestTimeoutMs: pick([100, 500]), pollMs: pick([20, 100]) }
  const bench = workbench({ seed, door: { framing, ...times, siren: { output: 3 } } })
  const releases: Promise<Told>[] = []
  const ons = () => bench.board.writes.filter((write) => write.coil === 0 && write.on).length
  await bench.untilReady()

  for (let step = 0; step < 40; step++) {
    await bench.world.advance(below(900))
    if (below(3) === 0) bench.port.plug()
    const what = below(10)
    if (what < 4) {
      const from = ons()
      // One at a time, so that every ON belongs to one release.
      const told = await bench.world.settle(bench.release())
      await bench.world.advance(2_500)
      releases.push(Promise.resolve({ from, to: ons(), told }))
    } else if (what < 7) bench.board.faults.on(fault())
    else if (what === 7) pick([bench.port.cut, bench.port.unplug, bench.board.restart])()
    else if (what === 8) bench.board.stick(0, pick([true, false, null]))
    else void bench.supervisor.execute('door', { kind: 'signal', signal: 'siren', seconds: below(20) }, forEver())
  }

  bench.board.faults.heal()
  bench.board.stick(0, null)
  bench.port.plug()
  await bench.world.advance(35_000)
  return { bench, releases: await Promise.all(releases) }
}

describe.each(['tcp', 'rtu'] as const)('a shift full of trouble over %s', (framing) => {
  test('ON at most once for each release, none without "commanded"; at the end ready, locked, quiet', async () => {
    const outcomes = new Map<string, number>()
    for (let seed = 1; seed <= 80; seed++) {
      const { bench, releases } = await shift(framing, seed)
      for (const { from, to, told } of releases) {
        const key = `${told.outcome} ${told.detail.split(':')[0]}`
        outcomes.set(key, (outcomes.get(key) ?? 0) + 1)
        const where = `seed ${seed}: ${JSON.stringify(told)}`
        expect(to - from, where).toBeLessThanOrEqual(told.commanded ? 1 : 0)
        if (told.outcome === 'confirmed') expect(to - from, where).toBe(1)
        if (told.outcome !== 'failed') expect(told.commanded, where).toBe(true)
      }
      expect(bench.supervisor.status('door')?.state, `seed ${seed}`).toBe('ready')
      expect(bench.board.coils, `seed ${seed}`).toEqual(Array.from({ length: 8 }, () => false))
      expect(bench.world.pending, `seed ${seed}`).toBeLessThan(20)
      expect((await bench.world.settle(bench.release())).outcome, `seed ${seed}`).toBe('confirmed')
      await bench.world.settle(bench.supervisor.stop())
    }
    // Every kind of ending has been reached, or this test would prove little.
    const failures = ['no_confirmation', 'input_stuck', 'refused', 'not_ready'].map((code) => `failed ${code}`)
    for (const kind of ['confirmed input_changed', 'unknown answer_lost', ...failures]) {
      expect(outcomes.get(kind) ?? 0, kind).toBeGreaterThan(2)
    }
  }, 60_000)
})
