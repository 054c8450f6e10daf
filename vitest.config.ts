import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { SlowestTests } from './test/support/slowest-tests.ts'
import { makeMemoryFolder } from './test/support/memory-folder.ts'

// Before the workers start: they and their children take it over.
const folder = makeMemoryFolder()
if (folder !== undefined) process.env['TMPDIR'] = folder

/**
 * What starts processes and browsers takes longest: begun first, nothing long is left at the end for one core alone.
 */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) =>
      /\/test\/(?:faults|fuzz|journeys|bin|bench|sim)\/|\/(?:docs|setup|pages)-[a-z]+\.test/.test(moduleId)
    const sorted = await super.sort(files)
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}

/** Sources that run at a customer's. */
const SHIPPED = ['policy', 'device-drivers', 'edge-agent', 'cloud', 'client', 'bin'].map(
  (module) => `${module}/**/*.{ts,tsx}`,
)

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    // Modules keep nothing but caches, so files may share them: loading them anew for each was a fifth of the whole
    // run.
    isolate: false,
    // Most files wait for processes, sockets and disks: one worker fewer than cores, as is usual, leaves a small
    // machine half idle.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    sequence: { sequencer: LongFirst },
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // A run of a few files needs no ranking.
    reporters: process.env['CI'] ? ['default', new SlowestTests()] : ['default'],
    // With `--coverage` (.ci/run): code in processes that tests start is not counted.
    coverage: { include: SHIPPED, reporter: ['text-summary'], reportOnFailure: true },
  },
})
