import type { Reporter, TestModule } from 'vitest/node'

/** How many tests and files are listed. */
const LISTED = 10

interface Timed {
  name: string
  durationMs: number
}

/** Prints the slowest tests and the slowest files at the end of a run, so that a slow one is seen when it is added. */
export class SlowestTests implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap((module) =>
      [...module.children.allTests()].map((test) => ({
        name: `${module.relativeModuleId} > ${test.fullName}`,
        durationMs: test.diagnostic()?.duration ?? 0,
      })),
    )
    const files = modules.map((module) => ({
      name: module.relativeModuleId,
      durationMs: module.diagnostic().duration + module.diagnostic().collectDuration,
    }))
    process.stdout.write(`\nSlowest tests\n${listed(tests)}\nSlowest files, with their imports\n${listed(files)}\n`)
  }
}

function listed(timed: readonly Timed[]): string {
  return timed
    .toSorted((a, b) => b.durationMs - a.durationMs)
    .slice(0, LISTED)
    .map(({ name, durationMs }) => `${(durationMs / 1000).toFixed(1).padStart(8)} s  ${name}\n`)
    .join('')
}
