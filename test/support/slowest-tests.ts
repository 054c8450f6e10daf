import type { Reporter, TestModule } from 'vitest/node'

/** Number of listed tests, and of listed files. */
const LISTED = 10

interface Timed {
  name: string
  durationMs: number
}

/** Prints the slowest tests and files at the end of a run, so that new slow tests are noticed. */
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
