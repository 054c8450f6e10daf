// @module-tag extended
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Result, Row } from './figure.ts'
import { FIGURE_NAMES } from './figures.ts'
import { SCALE_FIGURES, scaleRows } from './scale/scale-rows.ts'
import { withScaleTable } from './scale/scale-table.ts'
import { ROOT } from '../house/sources.ts'

const row = (name: string, microseconds: number, ratio: number, also: Record<string, number> = {}): Row => ({
  name,
  microseconds,
  perSecond: 1e6 / microseconds,
  ratio,
  quartiles: [ratio, ratio],
  also,
})
const result = (rows: Row[]): Result => ({ title: '', counts: '', rows, targets: [], notes: [] })

describe('the table of npm run bench -- --scale', () => {
  it('compares each figure with its aim', () => {
    const busy = { 'server CPU µs': 950, 'lock waits %': 6, 'conflicts %': 0.5, statements: 12, 'round trips': 4 }
    const rows = scaleRows({
      postgres: result([
        row('insertProduct, 1 in flight: PostgreSQL', 2_000, 1.5),
        row('insertProduct, 4 in flight: PostgreSQL', 1_000, 2),
        row('insertProduct, 16 in flight: PostgreSQL', 1_000, 2, busy),
      ]),
      drain: result([row('bare ingest transaction', 100, 1), row('reportProtectionEvents', 160, 1.6)]),
      'catalogue-size': result([
        row('searchProducts, two words, 1,000', 100, 1, { 'products in the answer': 1 }),
        row('searchProducts, two words, 100,000', 160, 1.6, { 'products in the answer': 5 }),
      ]),
    })
    expect(rows.map(({ measured, met, limit }) => [measured, met, limit])).toEqual([
      ['67 % of the rate (500/s)', true, 'CPU time of one thread, see "Hot paths", 0 statements, 0 round trips'],
      ['50 % of the rate (1,000/s)', false, 'CPU time of one thread, see "Hot paths", 0 statements, 0 round trips'],
      ['50 % of the rate (1,000/s)', false, 'core of the cloud 95 % busy, 12 statements, 4 round trips'],
      ['500/s, 1,000/s, 1,000/s', true, 'core of the cloud 95 % busy'],
      ['6.0 %', false, ''],
      ['0.5 %', true, ''],
      ['63 % of the rate (6,250/s)', true, 'CPU time of one thread, see "Hot paths"'],
      ['1.60 × the cost (0.16 ms)', false, '5 products in the answer instead of 1'],
    ])
  })

  it('names figures that exist', () => {
    for (const name of SCALE_FIGURES) expect(FIGURE_NAMES).toContain(name)
  })

  it('replaces the table of docs/performance.md, which has a row for each aim', () => {
    const page = readFileSync(join(ROOT, 'docs/performance.md'), 'utf8')
    const [, table = ''] = /<!-- Written by npm run bench.*-->\n([^]*?)<!-- End of the table -->/.exec(page) ?? []
    expect(table.match(/ [✓✗] \|/g)).toHaveLength(26)
    expect(withScaleTable(page, 'another table')).toBe(page.replace(table, '\nanother table\n'))
    expect(() => withScaleTable('no table', '')).toThrow('lacks the marks')
  })
})
