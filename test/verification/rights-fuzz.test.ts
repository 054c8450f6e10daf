// @module-tag extended
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { RIGHTS_MUTANTS } from './fuzz/rights/rights-mutants.ts'
import { IS_FULL_SIZE } from '../support/full-size.ts'
import { hashesOf, runFuzzer } from '../support/fuzz-process.ts'

const DIST = join(import.meta.dirname, '../../dist')
/** Steps of each run, and number of runs. `npm run fuzz` does 100,000 steps besides in `.ci/full`. */
const [STEPS, RUNS] = IS_FULL_SIZE ? [400, 3] : [100, 2]
/** Mutants of three kinds, which few steps find. `.ci/full` runs all of them. */
const SAMPLE = ['right-checked-before-body', 'form-of-first-store', 'stream-survives-session']

describe('the fuzzer of rights', () => {
  it('finds no caller who acts without a right; each seed repeats its run', async () => {
    const run = (seed: number, runs: number) =>
      runFuzzer(['--rights', '--run', `${STEPS}`, '--requests', `${STEPS * runs}`, '--seed', `${seed}`])
    const [all, second] = await Promise.all([run(1, RUNS), run(2, 1)])
    expect([all.code, all.stdout]).toEqual([0, expect.stringMatching(`^${STEPS * RUNS} steps, 0 violations; `)])
    const hashes = hashesOf(all.stdout)
    expect(new Set(hashes).size).toBe(RUNS)
    expect(hashesOf(second.stdout)).toEqual([hashes[1]])
  }, 600_000)
})

describe('mutants of rights', () => {
  it.each(RIGHTS_MUTANTS.map((bug) => [bug.name, bug] as const))('%s fits the built code', (_, bug) => {
    for (const { file, find } of bug.changes)
      expect(readFileSync(join(DIST, file), 'utf8').split(find).length - 1, `${file}: ${find}`).toBe(1)
  })

  const find = async (names: readonly string[]) => {
    const { code, stdout } = await runFuzzer(['--bugs', '--requests', '20000', '--only', names.join(), '--jobs', '2'])
    expect([code, stdout]).toEqual([
      0,
      expect.stringContaining(`${names.length} of ${names.length} mutants were found`),
    ])
  }
  it('are found, each by its own rule', { timeout: 1_800_000 }, () =>
    find(IS_FULL_SIZE ? RIGHTS_MUTANTS.map(({ name }) => name) : SAMPLE),
  )
})
