// @module-tag extended
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { campaign, fewestFaults } from './simulation/campaign.ts'
import { chanceOf } from './simulation/virtual/chance.ts'
import { MUTANTS } from './simulation/mutants/catalogue.ts'
import { LYING_AGENT_MUTANTS } from './simulation/mutants/lying-agent-mutants.ts'
import { shopsIn } from './simulation/nodes/shops.ts'
import { runSeed } from './simulation/run-seed.ts'
import { scheduler } from './simulation/virtual/scheduler.ts'
import { IS_FULL_SIZE, itInFullSize } from '../support/full-size.ts'
import { runSim } from '../support/sim-process.ts'

const DIST = join(import.meta.dirname, '../../dist')
const folder = mkdtempSync(join(tmpdir(), 'untag-sim-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Number of runs of each kind. */
const RUNS = IS_FULL_SIZE
  ? { longer: 2, provider: 3, liar: 4, emergency: 5, tills: 8, faultless: [4, 5, 6, 7], campaign: '3' }
  : { longer: 1, provider: 1, liar: 1, emergency: 1, tills: 1, faultless: [4], campaign: '2' }

/** A few runs for every change. `npm run sim` runs more. */
describe('the simulation', () => {
  const shops = shopsIn(existsSync('/dev/shm') ? '/dev/shm' : tmpdir())
  afterAll(() => shops.remove())

  it('gives the same run for the same seed and another run for another seed', async () => {
    const [first, again, other] = [
      await runSeed(shops, { seed: 3, liveness: false }),
      await runSeed(shops, { seed: 3, liveness: false }),
      await runSeed(shops, { seed: 4, liveness: false }),
    ]
    expect(again.hash).toBe(first.hash)
    expect(again.steps).toBe(first.steps)
    expect(other.hash).not.toBe(first.hash)
    expect([...first.violations, ...other.violations]).toEqual([])
  })

  itInFullSize('finds no violation under drawn faults', async () => {
    const { failed, nondeterministic, seeds } = await campaign(shops, {
      firstSeed: 1_000,
      seeds: 5,
      liveness: false,
      twiceEvery: 0,
      untilFirst: true,
    })
    expect(failed.flatMap((f) => f.violations)).toEqual([])
    expect(nondeterministic).toEqual([])
    expect(seeds).toBe(5)
  })

  it('recovers from longer faults within half an hour', async () => {
    const { failed } = await campaign(shops, {
      firstSeed: 2_000,
      seeds: RUNS.longer,
      liveness: true,
      twiceEvery: 0,
      untilFirst: true,
    })
    expect(failed.flatMap((f) => f.violations)).toEqual([])
  })

  it('sells or refunds every payment while the payment provider fails', async () => {
    const { failed } = await campaign(shops, {
      firstSeed: 3_000,
      seeds: RUNS.provider,
      liveness: true,
      twiceEvery: 0,
      untilFirst: true,
      faults: ['provider', 'cloud-crash', 'weather'],
    })
    expect(failed.flatMap((f) => f.violations)).toEqual([])
  })

  it('ignores false reports of an enrolled agent about other agents', async () => {
    const { failed } = await campaign(shops, {
      firstSeed: 1,
      seeds: RUNS.liar,
      liveness: false,
      twiceEvery: IS_FULL_SIZE ? 4 : 0,
      untilFirst: true,
      faults: ['liar', 'lan', 'weather'],
    })
    expect(failed.flatMap((f) => f.violations)).toEqual([])
  })

  it('opens only the exits in an emergency under faults', async () => {
    const { failed } = await campaign(shops, {
      firstSeed: 9,
      seeds: RUNS.emergency,
      liveness: false,
      twiceEvery: IS_FULL_SIZE ? 5 : 0,
      untilFirst: true,
      faults: ['emergency', 'agent-crash', 'agent-disk', 'partition', 'restart'],
    })
    expect(failed.flatMap((f) => f.violations)).toEqual([])
  })

  it('keeps what tills report while agents and networks fail', async () => {
    const { failed } = await campaign(shops, {
      firstSeed: 11,
      seeds: RUNS.tills,
      liveness: true,
      twiceEvery: IS_FULL_SIZE ? 4 : 0,
      untilFirst: true,
      faults: ['tills', 'partition', 'lan', 'agent-crash'],
    })
    expect(failed.flatMap((f) => f.violations)).toEqual([])
  })

  it('releases goods without faults', async () => {
    const runs = []
    for (const seed of RUNS.faultless)
      runs.push(await runSeed(shops, { seed, liveness: true, faults: [], keepLines: 100_000 }))
    expect(runs.flatMap(({ violations }) => violations)).toEqual([])
    expect(runs.flatMap(({ lines }) => lines)).toContainEqual(expect.stringMatching(/deactivate_label: yes, confirmed/))
  })

  it('reduces a failed run to the fewest faults', async () => {
    const result = await runSeed(shops, { seed: 6, liveness: false, faults: ['broker', 'devices'] })
    const failed = { ...result, violations: [{ invariant: 'I1' as const, detail: 'made up', atMs: 0 }] }
    // The failure is invented, so no fault can be removed.
    expect((await fewestFaults(shops, failed, false, 10)).faults).toEqual(['broker', 'devices'])
  })
})

describe('the mutation catalogue', () => {
  it('has at least 24 mutants with unique names', () => {
    expect(MUTANTS.length).toBeGreaterThanOrEqual(24)
    expect(new Set(MUTANTS.map((bug) => bug.name)).size).toBe(MUTANTS.length)
  })

  it.each(MUTANTS.map((bug) => [bug.name, bug] as const))('%s fits the built code', (_, bug) => {
    for (const { file, find } of bug.changes)
      expect(readFileSync(join(DIST, file), 'utf8').split(find).length - 1, `${file}: ${find}`).toBe(1)
  })

  it(`are found within 60 runs${IS_FULL_SIZE ? '' : ' (a sample)'}`, async () => {
    const file = join(folder, 'bugs.json')
    // The first run finds both mutants of the sample: one that breaks a rule, and one that believes a lying agent.
    const [quick, lying] = ['release-before-claim', 'delegation-from-any-agent']
    const names = IS_FULL_SIZE
      ? [quick, 'claim-not-unique', ...LYING_AGENT_MUTANTS.map(({ name }) => name)]
      : [quick, lying]
    const { code } = await runSim(['--bugs', '--seeds', '60', '--only', names.join(','), '--json', file])
    const { kind, bugs } = JSON.parse(readFileSync(file, 'utf8')) as {
      kind: string
      bugs: { name: string; caughtBy: string; seed: number | null; invariant: string }[]
    }
    expect(kind).toBe('bugs')
    expect(bugs.filter(({ seed }) => seed === null)).toEqual([])
    expect(bugs.map(({ name }) => name).sort()).toEqual(names.toSorted())
    const rules = { 'claim-not-unique': 'I1', [quick]: 'I2' }
    for (const { name, caughtBy, invariant, seed } of bugs.filter((bug) => bug.name in rules)) {
      expect([caughtBy, invariant]).toEqual(['safety', rules[name as keyof typeof rules]])
      expect(seed).toBeLessThanOrEqual(40)
    }
    expect(code).toBe(0)
  })
})

describe('a campaign', () => {
  it('runs in several processes and writes its result as JSON', async () => {
    const file = join(folder, 'safety.json')
    const { code, stdout } = await runSim(['--first', '3000', '--seeds', RUNS.campaign, '--jobs', '2', '--json', file])
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({
      kind: 'safety',
      seeds: Number(RUNS.campaign),
      from: 3_000,
      violations: [],
      cpuSeconds: expect.any(Number) as number,
      worldsPerCpuSecond: expect.any(Number) as number,
    })
    expect(stdout).toContain('2 ran twice, each with equal results')
    expect(code).toBe(0)
  })
})

describe('the scheduler', () => {
  it('runs tasks by time, and tasks of the same time in random order', async () => {
    const orders = new Set<string>()
    for (let seed = 0; seed < 20; seed++) {
      const clock = scheduler(0, chanceOf(seed))
      const done: string[] = []
      for (const [name, ms] of [
        ['late', 9],
        ['a', 5],
        ['b', 5],
        ['early', 1],
      ] as const)
        clock.after(ms, () => void done.push(name))
      clock.after(7, () => void done.push('never'))()
      await clock.run(100)
      expect([done[0], done.at(-1), done.length]).toEqual(['early', 'late', 4])
      expect(clock.nowMs).toBe(100)
      orders.add(done.join())
    }
    expect(orders.size).toBe(2)
  })
})
