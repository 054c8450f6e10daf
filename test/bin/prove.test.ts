import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import type { ProofPart } from '../verification/prove/part.ts'
import { partsOf } from '../verification/prove/parts.ts'
import {
  reportText,
  mutantsTable,
  figuresTable,
  furthest,
  withTables,
  type Report,
} from '../verification/prove/report.ts'
import { progressLine } from '../verification/prove/progress-line.ts'
import { runParts, type ProofContext } from '../verification/prove/run-parts.ts'
import { sumOf } from '../verification/prove/state.ts'
import { realPlatform } from '../../host/platform.ts'
import { MUTANTS } from '../verification/simulation/mutants/catalogue.ts'
import { temporaryFolder } from '../support/databases.ts'

const ROOT = join(import.meta.dirname, '../..')
const folder = temporaryFolder('prove')
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A proof part of 25 things in chunks of 10. The 13th thing violates its invariant. */
function part(change: Partial<ProofPart> = {}): ProofPart & { ran: number[] } {
  const ran: number[] = []
  return {
    name: 'p',
    title: 'A part',
    unit: 'things',
    of: { ci: 25, night: 50 },
    chunk: { ci: 10, night: 10 },
    concurrency: 'by side',
    ran,
    run({ from, count, onProgress }) {
      ran.push(from)
      onProgress(count)
      return Promise.resolve({
        violations: from <= 13 && 13 < from + count ? ['thing 13'] : [],
        figures: { hoursOfThings: count / 2 },
        rows: [{ from }],
      })
    },
    ...change,
  }
}
const run = (
  parts: ProofPart[],
  change: {
    build?: string
    goesOn?: boolean
    earlierResults?: ProofContext['earlierResults']
    machine?: string
    signal?: AbortSignal
    jobs?: number
    isStill?: boolean
    shown?: number[]
  } = {},
) =>
  runParts({
    parts,
    size: 'ci',
    folder,
    build: change.build ?? 'b1',
    commit: `commit of ${change.build ?? 'b1'}`,
    machine: change.machine ?? 'a machine',
    reusesEarlierCode: change.goesOn ?? false,
    earlierResults: change.earlierResults ?? [],
    isBuildUnchanged: () => change.isStill ?? true,
    jobs: change.jobs ?? 2,
    clock: realPlatform().clock,
    signal: change.signal ?? new AbortController().signal,
    progress: { show: ({ done }) => void change.shown?.push(done), end: () => undefined },
  }).then((all) => all.map((proven) => ({ ...proven, ...sumOf(proven) })))

describe('npm run prove', () => {
  it('ignores earlier results of another list, for example after a mutant was inserted', async () => {
    const held = {
      run: ({ from, count }: { from: number; count: number }) =>
        Promise.resolve({ violations: [], rows: [{ from, count }] }),
    }
    await run([part({ name: 'list', of: { ci: 23, night: 23 }, ...held })])
    const ran: number[] = []
    const other = part({
      name: 'list',
      of: { ci: 24, night: 24 },
      isSameList: (_, { from }) => from !== 10,
      run: ({ from, count }) => (ran.push(from), held.run({ from, count })),
    })
    // The last chunk became longer, and the middle one changed.
    const [proven] = await run([other], { jobs: 1, build: 'b2', goesOn: true })
    expect([ran, proven?.done, proven?.rows]).toEqual([
      [10, 20],
      24,
      [
        { from: 0, count: 10 },
        { from: 10, count: 10 },
        { from: 20, count: 4 },
      ],
    ])
  })

  it('counts finished chunks, adds up the figures and keeps the violations', async () => {
    const shown: number[] = []
    const [proven] = await run([part({ name: 'whole' })], { shown })
    expect(proven).toMatchObject({
      done: 25,
      of: 25,
      violations: ['thing 13'],
      figures: { hoursOfThings: 12.5 },
      rows: [{ from: 0 }, { from: 10 }, { from: 20 }],
    })
    expect(shown.at(-1)).toBe(25)
  })

  it('shows progress, position and remaining time on one line', () => {
    let shown = ''
    const line = progressLine({ isTTY: true, write: (text) => void (shown = text) }, { elapsed: () => 0 })
    line.show({
      part: part({ name: 'things' }),
      done: 5_000,
      of: 25_000,
      violations: 0,
      perSecond: 10,
      at: 'cloud starting: disk full at 200',
    })
    expect(shown).toBe(
      'things       5,000 of 25,000 things, 20 %, 33 min left: cloud starting: disk full at 200\u001b[K\r',
    )
    line.show({ part: part({ name: 'things' }), done: 0, of: 25, violations: 1, perSecond: 0 })
    expect(shown).toBe('things       0 of 25 things, 0 %, 1 did not hold\u001b[K\r')
  })

  it('continues a stopped run, and starts again after a code change', async () => {
    const controller = new AbortController()
    const stopped = part({ name: 'cut' })
    const { run: runChunk } = stopped
    stopped.run = (chunk) => {
      if (chunk.from === 10) controller.abort(new Error('stopped'))
      return chunk.signal.aborted ? Promise.reject(chunk.signal.reason as Error) : runChunk(chunk)
    }
    await expect(run([stopped], { signal: controller.signal, jobs: 1 })).rejects.toThrow('stopped')
    expect(stopped.ran).toEqual([0])
    const again = part({ name: 'cut' })
    expect((await run([again], { jobs: 1 }))[0]).toMatchObject({ done: 25, violations: ['thing 13'] })
    expect(again.ran).toEqual([10, 20])
    const third = part({ name: 'cut' })
    await run([third], { jobs: 1 })
    expect(third.ran).toEqual([])
    await run([third], { jobs: 1, build: 'b2' })
    expect(third.ran).toEqual([0, 10, 20])
  })

  it('keeps successful chunks of earlier code with --go-on and repeats the failed ones', async () => {
    await run([part({ name: 'on' })], { jobs: 1 })
    const again = part({ name: 'on' })
    expect((await run([again], { jobs: 1, build: 'b2', goesOn: true }))[0]).toMatchObject({
      done: 25,
      violations: ['thing 13'],
      commits: { 'commit of b1': 15, 'commit of b2': 10 },
    })
    expect(again.ran).toEqual([10])
  })

  it('continues from the stored report on another machine only with --go-on', async () => {
    const [proven] = await run([part({ name: 'far' })], { jobs: 1 })
    if (!proven) throw new Error('no part')
    const { parts: earlierResults } = JSON.parse(reportText({ at: '', parts: [{ ...proven, size: 'ci' }] })) as Report
    rmSync(join(folder, 'ci-far.json'))
    const elsewhere = part({ name: 'far' })
    const [more] = await run([elsewhere], { jobs: 1, earlierResults, goesOn: true, machine: 'another' })
    expect([elsewhere.ran, more?.done]).toEqual([[10], 25])
    expect(Object.values(more?.chunks ?? {}).map(({ machine }) => machine)).toEqual([
      'a machine',
      'another',
      'a machine',
    ])
    const anew = part({ name: 'far' })
    rmSync(join(folder, 'ci-far.json'))
    await run([anew], { jobs: 1, earlierResults })
    expect(anew.ran).toEqual([0, 10, 20])
  })

  it('stops if a part throws, and keeps the finished chunks', async () => {
    const broken = part({ name: 'broken' })
    const { run: runChunk } = broken
    broken.run = (chunk) => (chunk.from === 10 ? Promise.reject(new Error('no such program')) : runChunk(chunk))
    await expect(run([broken], { jobs: 1 })).rejects.toThrow('no such program')
    const fixed = part({ name: 'broken' })
    await run([fixed], { jobs: 1 })
    expect(fixed.ran).toEqual([10, 20])
  })

  it('discards the chunk if the project was rebuilt meanwhile', async () => {
    await expect(run([part({ name: 'moved' })], { isStill: false })).rejects.toThrow('rebuilt during the run')
    const again = part({ name: 'moved' })
    await run([again], { jobs: 1 })
    expect(again.ran).toEqual([0, 10, 20])
  })

  it('reports skipped parts with the reason', async () => {
    const [proven] = await run([part({ name: 'left', whyImpossible: () => 'strace is not installed' })])
    expect(proven).toMatchObject({ done: 0, skipped: 'strace is not installed' })
  })

  it('has the documented sizes', () => {
    const sizes = Object.fromEntries(partsOf(ROOT).map(({ name, of }) => [name, of]))
    expect(sizes).toMatchObject({
      safety: { ci: 2_000, night: 100_000 },
      liveness: { ci: 300, night: 10_000 },
      bugs: { ci: MUTANTS.length, night: MUTANTS.length },
      kills: { ci: 100, night: 5_000 },
      'power-loss': { ci: 5_000, night: 500_000 },
    })
  })
})

describe('the report of npm run prove', () => {
  const found = { violations: [], commit: 'abc1234', machine: 'A processor, 2 cores, Node v20.20.2' }
  const report: Report = {
    at: '2026-11-21T04:00:00.000Z',
    parts: [
      {
        name: 'safety',
        title: 'Worlds',
        unit: 'worlds',
        of: 10,
        size: 'night',
        chunk: 6,
        chunks: {
          0: { ...found, count: 6, seconds: 20, figures: { virtualHours: 6.2 } },
          1: { ...found, count: 4, seconds: 10, figures: { virtualHours: 6.2 }, commit: 'def5678', machine: 'another' },
        },
      },
      {
        name: 'bugs',
        title: 'Bugs',
        unit: 'bugs',
        of: 2,
        size: 'ci',
        chunk: 2,
        chunks: {
          0: {
            ...found,
            count: 2,
            seconds: 9_000,
            violations: ['b was not found'],
            rows: [
              { bug: 'a', what: 'x', worlds: 3, invariant: 'I1' },
              { bug: 'b', what: 'y', worlds: 0, invariant: '' },
            ],
          },
        },
      },
      { name: 'redeem', title: 'Cuts', unit: 'calls', of: 6, size: 'ci', chunk: 1, chunks: {}, skipped: 'no strace' },
      {
        name: 'kills',
        title: 'Kills',
        unit: 'kills',
        of: 5_000,
        size: 'night',
        chunk: 700,
        chunks: { 0: { ...found, count: 700, seconds: 300, commit: 'def5678' } },
      },
    ],
  }

  it('shows figures, violations and skipped parts', () => {
    expect(figuresTable(report)).toMatchInlineSnapshot(`
      "2026-11-21; A processor, 2 cores, Node v20.20.2; another.

      | proof | size | how much | result | time of all processes | commit |
      |---|---|---|---|---|---|
      | Worlds | night | 10 worlds, 12 virtual hours | all held | 30 s | abc1234 (60 %), def5678 (40 %) |
      | Bugs | ci | 2 bugs | **1 did not hold** | 2.5 h | abc1234 |
      | Cuts | ci | – | left out: no strace | 0 s |  |
      | Kills | night | 700 of 5,000 kills | all held so far, 14 % | 5 min | def5678 |

      - bugs: b was not found"
    `)
    expect(mutantsTable(report)).toContain('| a | x | 3 runs | I1 |')
    expect(mutantsTable(report)).toContain('| b | y | **not found** |')
  })

  it('shows the longest run of each part, unless a newer run has violations', () => {
    const [worlds] = report.parts
    if (!worlds) throw new Error('no part')
    const of = (hour: number, done: number, violations: string[] = []): Report => ({
      ...report,
      at: `2026-11-21T0${hour}:00:00.000Z`,
      parts: [{ ...worlds, chunks: { 0: { ...found, count: done, seconds: 1, violations } } }],
    })
    const doneOf = (...reports: [Report, ...Report[]]) => furthest(reports).parts.map((part) => sumOf(part).done)
    expect(doneOf(of(4, 3), of(5, 2))).toEqual([3])
    expect(doneOf(of(4, 3), of(5, 2, ['seed 2']))).toEqual([2])
  })

  it('matches test/verification/results.md', () => {
    const page = readFileSync(join(ROOT, 'test/verification/results.md'), 'utf8')
    const kept = readFileSync(join(ROOT, 'test/verification/results.json'), 'utf8')
    const found = JSON.parse(kept) as Report
    expect(withTables(page, found)).toBe(page)
    // One line for each part, so that a new result changes one line.
    expect(kept).toBe(reportText(found))
    expect(kept.split('\n')).toHaveLength(found.parts.length + 3)
    expect(() => withTables('no marks', report)).toThrow('lacks the marks')
  })
})
