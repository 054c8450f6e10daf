import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { MODES, type Sizes } from './figure.ts'
import { FIGURE_NAMES, loadFigure } from './figures.ts'
import { ROOT } from '../support/built.ts'

const SOURCES = readdirSync(join(ROOT, 'test/bench'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts'))
  .map((path) => readFileSync(join(ROOT, 'test/bench', path), 'utf8'))

/** The largest number of each size. Some sizes are lists of numbers. */
function largest(sizes: Sizes[keyof Sizes]): Record<string, number> {
  return Object.fromEntries(Object.entries(sizes).map(([name, size]) => [name, Math.max(...[size].flat())]))
}

describe('the figures of npm run bench', () => {
  it('are all listed', async () => {
    const declared = SOURCES.flatMap((source) => source.match(/^export const \w+: Figure\b/gm) ?? [])
    expect(declared).toHaveLength(FIGURE_NAMES.length)
    const loaded = await Promise.all(FIGURE_NAMES.map(loadFigure))
    expect(new Set(loaded).size).toBe(FIGURE_NAMES.length)
  })

  it.each(FIGURE_NAMES)('%s has a smoke size with at most a fifth of the work of the quick size', async (name) => {
    const { sizes } = await loadFigure(name)
    expect(new Set(MODES.map((mode) => Object.keys(sizes[mode]).join())).size, 'sizes differ in their names').toBe(1)
    const [quick, smoke] = [largest(sizes.quick), largest(sizes.smoke)]
    for (const [size, value] of Object.entries(smoke)) expect(value, size).toBeLessThanOrEqual(quick[size]!)
    const work = (all: Record<string, number>) => Object.values(all).reduce((product, size) => product * (size + 1), 1)
    expect(work(quick) / work(smoke), 'times as much work as the smoke run').toBeGreaterThanOrEqual(5)
  })
})
