import { readFileSync } from 'node:fs'
import { IS_FULL_SIZE } from './full-size.ts'
import type { Reporter, TestModule, Vitest } from 'vitest/node'

/** Whether the whole file belongs to the second tier. */
export function isExtended(file: string): boolean {
  return readFileSync(file, 'utf8').startsWith('// @module-tag extended')
}

/** Whether a file names one of the ways to give tests the tag `extended` (`extended.ts`). */
export function mayHaveExtended(file: string): boolean {
  const ways = IS_FULL_SIZE
    ? /\b(EXTENDED|suiteWith|randomTest|\w+EveryDatabase)\b/i
    : /\b(EXTENDED|suiteWith|onEveryDatabase|randomTest)\b/
  return isExtended(file) || ways.test(readFileSync(file, 'utf8'))
}

/**
 * Fails a run in which a test without the tag `extended` is skipped. The first tier runs whole on each machine: a test
 * that depends on the machine belongs to the second tier. Fails, too, if a file has tests of the second tier that a run
 * of this tier would not find.
 */
export class FirstTierIsWhole implements Reporter {
  private onlyExtended = false

  onInit(vitest: Vitest): void {
    this.onlyExtended = vitest.config.tagsFilter?.includes('extended') ?? false
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    if (this.onlyExtended) return
    const all = modules.flatMap((module) =>
      [...module.children.allTests()].map((test) => ({ module, test, extended: test.tags.includes('extended') })),
    )
    const skipped = all.filter(
      ({ test, extended }) => !extended && test.options.mode === 'skip' && test.result().state === 'skipped',
    )
    fail('These tests are skipped. Give them the tag "extended"', skipped)
    const hidden = all.filter(({ module, extended }) => extended && !mayHaveExtended(module.moduleId))
    fail('These tests are "extended", but their files do not say so', hidden)
  }
}

function fail(text: string, tests: { module: TestModule; test: { fullName: string } }[]): void {
  if (tests.length === 0) return
  const names = tests.map(({ module, test }) => `${module.relativeModuleId} > ${test.fullName}`)
  process.stdout.write(`\n${text}:\n${names.join('\n')}\n`)
  process.exitCode = 1
}
