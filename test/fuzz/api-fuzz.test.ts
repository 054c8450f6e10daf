import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { FUZZ_MUTANTS } from '../../verification/fuzz/fuzz-mutants.ts'
import { runFuzzer } from '../support/fuzz-process.ts'

const DIST = join(import.meta.dirname, '../../dist')

describe('the API fuzzer', () => {
  // `.ci/full` sends 20,000 requests and runs all mutants.
  it('finds no violation in 10,000 requests, and succeeds with every operation', { timeout: 600_000 }, async () => {
    const { code, stdout } = await runFuzzer(['--requests', '10000', '--seed', '1'])
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^1\d{4} requests, 0 violations; /)])
  })

  it('sends the same requests and gets the same answers for the same seed', { timeout: 300_000 }, async () => {
    const run = (seed: string) => runFuzzer(['--requests', '200', '--seed', seed])
    const [first, again, other] = await Promise.all([run('7'), run('7'), run('8')])
    expect(again.stdout).toBe(first.stdout)
    expect(other.stdout).not.toBe(first.stdout)
  })
})

describe('mutants of the API', () => {
  it.each(FUZZ_MUTANTS.map((bug) => [bug.name, bug] as const))('%s fits the built code', (_, bug) => {
    for (const { file, find } of bug.changes)
      expect(readFileSync(join(DIST, file), 'utf8').split(find).length - 1, `${file}: ${find}`).toBe(1)
  })

  it('are found by the fuzzer, each by its own rule', { timeout: 600_000 }, async () => {
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
