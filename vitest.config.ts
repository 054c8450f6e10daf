import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { makeMemoryFolder } from './test/support/memory-folder.ts'

// Before the workers start: they and their children take it over.
const folder = makeMemoryFolder()
if (folder !== undefined) process.env['TMPDIR'] = folder

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    // Most files wait for processes, sockets and disks: one worker fewer than cores, as is usual, leaves a small machine half idle.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    testTimeout: 60_000,
    hookTimeout: 120_000,
    reporters: ['default'],
  },
})
