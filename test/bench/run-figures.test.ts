import { describe, expect, it } from 'vitest'
import { FigureUnavailable, type Mode, type Result } from './figure.ts'
import { runFigures, type Outcome } from './run-figures.ts'

const ROW = { name: 'ours', microseconds: 2, perSecond: 500_000, ratio: 1, quartiles: [1, 1], also: {} } as const
const TARGET = { text: 'ours: at most 1.5 × the cost of bare', measured: 2, limit: 1.5, met: false }

function resultOf(title: string, rows: Result['rows'] = [ROW]): Result {
  return { title, counts: 'wall time', rows, targets: [TARGET], notes: [] }
}

async function run(results: Readonly<Record<string, Result | Error>>, mode: Mode = 'quick') {
  const [stored, printed, warned]: [Outcome[], string[], string[]] = [[], [], []]
  const outcome = await runFigures({
    names: Object.keys(results),
    mode,
    measure(name) {
      const result = results[name]!
      return result instanceof Error ? Promise.reject(result) : Promise.resolve(result)
    },
    keep: (soFar) => stored.push(structuredClone(soFar)),
    say: (text) => printed.push(text),
    warn: (text) => warned.push(text),
  })
  return { outcome, stored, printed: printed.join('\n'), warned: warned.join('\n') }
}

describe('a run of figures', () => {
  it('continues after a failed figure and records the message', async () => {
    const { outcome, printed, warned } = await run({
      first: resultOf('1  First'),
      broken: new Error('Invalid Record Length: expect 12, got 10 on line 2'),
      last: resultOf('3  Last'),
    })
    expect(Object.keys(outcome.figures)).toEqual(['first', 'last'])
    expect(outcome.failures).toEqual({ broken: { message: 'Invalid Record Length: expect 12, got 10 on line 2' } })
    expect(printed).toContain('FAILED  broken: Invalid Record Length: expect 12, got 10 on line 2')
    expect(printed).toContain('3  Last')
    expect(printed).toContain('1 of 3 figures failed: broken')
    expect(warned).toContain('run-figures.test.ts')
  })

  it('stores the results before the first figure and after every one', async () => {
    const { stored } = await run({ first: resultOf('1  First'), broken: new Error('no'), last: resultOf('3  Last') })
    expect(stored.map(({ figures, failures }) => [...Object.keys(figures), ...Object.keys(failures)])).toEqual([
      [],
      ['first'],
      ['first', 'broken'],
      ['first', 'last', 'broken'],
    ])
  })

  it.each([
    ['without rows', [], 'the figure has no rows'],
    [
      'with a row that was not measured',
      [{ ...ROW, microseconds: Number.NaN }],
      'nothing was measured for the row "ours"',
    ],
  ])('counts a result %s as a failure', async (_, rows, message) => {
    const { outcome } = await run({ empty: resultOf('1  Empty', rows) })
    expect(outcome).toEqual({ figures: {}, failures: { empty: { message } }, skipped: {} })
  })

  it('skips a figure that this machine cannot run, with the reason, and runs the next one', async () => {
    const reason = 'there is no PostgreSQL: install the package postgresql'
    const { outcome, printed, warned } = await run({
      postgres: new FigureUnavailable(reason),
      last: resultOf('3  Last'),
    })
    expect(outcome).toMatchObject({ failures: {}, skipped: { postgres: reason } })
    expect(Object.keys(outcome.figures)).toEqual(['last'])
    expect(printed).toContain(`skipped postgres: ${reason}`)
    expect(warned).toBe('')
  })

  it('does not count a missed target as a failure', async () => {
    const { outcome, printed } = await run({ slow: resultOf('1  Slow') })
    expect(outcome.failures).toEqual({})
    expect(printed).toContain('MISSED 2.00')
  })

  it('reports no targets in a smoke run', async () => {
    const { outcome, printed } = await run({ slow: resultOf('1  Slow') }, 'smoke')
    expect(outcome.figures['slow']?.targets).toEqual([])
    expect(printed).toBe('ran     slow')
  })
})
