import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { FirstTierIsWhole, isExtended, mayHaveExtended } from './test/support/first-tier.ts'
import { makeMemoryFolder } from './test/support/memory-folder.ts'
import { SlowestTests } from './test/support/slowest-tests.ts'

// Before the workers start: they and their children take it over.
const folder = makeMemoryFolder()
if (folder !== undefined) process.env['TMPDIR'] = folder

/** vitest imports each file before it looks at tags. Files without a test of the tier are left out before that. */
class FilesOfTheTier extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const filter = this.ctx.config.tagsFilter ?? []
    if (filter.includes('!extended')) return sorted.filter(({ moduleId }) => !isExtended(moduleId))
    return filter.includes('extended') ? sorted.filter(({ moduleId }) => mayHaveExtended(moduleId)) : sorted
  }
}

/** Sources that run at a customer's. */
const SHIPPED = ['policy', 'device-drivers', 'edge-agent', 'cloud', 'clients', 'host', 'bin'].map(
  (module) => `${module}/**/*.{ts,tsx}`,
)

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    tags: [
      {
        name: 'extended',
        description:
          'second tier: needs another program or a second database, or runs mutants, benchmarks, long random runs or the commands of the pages',
      },
    ],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    // Modules keep nothing but caches, so files may share them: loading them anew for each was a fifth of the whole
    // run.
    isolate: false,
    // A quarter of a worker's time is waiting for processes, sockets and disks, so one worker more than cores.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: FilesOfTheTier },
    // Only what hangs may end by a limit: a busy machine is slow by a factor of ten.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    reporters: ['default', new FirstTierIsWhole(), ...(process.env['CI'] ? [new SlowestTests()] : [])],
    // With `--coverage`: code in processes that tests start is not counted.
    coverage: { include: SHIPPED, reporter: ['text-summary'], reportOnFailure: true },
  },
})
