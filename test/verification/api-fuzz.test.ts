// @module-tag extended
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { FUZZ_MUTANTS } from './fuzz/fuzz-mutants.ts'
import { IS_FULL_SIZE, itInFullSize } from '../support/full-size.ts'
import { hashesOf, runFuzzer } from '../support/fuzz-process.ts'

const DIST = join(import.meta.dirname, '../../dist')

/** Requests of each run, and number of runs. A run in full size shows that every operation succeeds. */
const [REQUESTS, RUNS] = IS_FULL_SIZE ? [2_500, 4] : [500, 2]

describe('the API fuzzer', () => {
  it('finds no violation; each seed repeats its requests and answers', { timeout: 600_000 }, async () => {
    // The last request of a run may need some more, so a short further run follows.
    const run = (seed: number, runs: number) =>
      runFuzzer(['--run', `${REQUESTS}`, '--requests', `${REQUESTS * runs + 50}`, '--seed', `${seed}`])
    const [all, second] = await Promise.all([run(1, RUNS), run(2, 1)])
    expect([all.code, all.stdout]).toEqual([0, expect.stringMatching(/^\d{4,5} requests, 0 violations; /)])
    const hashes = hashesOf(all.stdout)
    expect(new Set(hashes).size).toBe(RUNS + 1)
    expect(hashesOf(second.stdout)[0]).toBe(hashes[1])
  })
})

describe('mutants of the API', () => {
  it.each(FUZZ_MUTANTS.map((bug) => [bug.name, bug] as const))('%s fits the built code', (_, bug) => {
    for (const { file, find } of bug.changes)
      expect(readFileSync(join(DIST, file), 'utf8').split(find).length - 1, `${file}: ${find}`).toBe(1)
  })

  itInFullSize('are found by the fuzzer, each by its own rule', { timeout: 600_000 }, async () => {
    // A sample of the mutants.
    const wanted = [
      'unknown-field-accepted',
      'list-of-all-tenants',
      'unhandled-exception',
      'account-package-not-checked',
    ]
    const { code, stdout } = await runFuzzer(['--bugs', '--requests', '40000', '--only', wanted.join(), '--jobs', '2'])
    expect([code, stdout]).toEqual([0, expect.stringContaining('4 of 4 mutants were found')])
  })
})
