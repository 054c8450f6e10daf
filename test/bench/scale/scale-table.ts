import { readFileSync, writeFileSync } from 'node:fs'
import { replaceMarked } from '../../../scripts/generate/contract-page.ts'
import type { Report } from '../run-figures.ts'
import { scaleRows } from './scale-rows.ts'

/** Page with the table. */
const PAGE = 'docs/performance.md'
const [BEGIN, END] = ['<!-- Written by npm run bench -- --scale --write -->', '<!-- End of the table -->']

/** What the table needs of a report. */
export type ScaleReport = Pick<Report, 'at' | 'mode' | 'machine' | 'figures'>

/** The table of all aims, as Markdown. */
export function scaleTable({ at, mode, machine, figures }: ScaleReport): string {
  const { cpu, cores, node, sqlite, fileSystem, load } = machine
  const rows = scaleRows(figures).map(({ what, comparedWith, measured, aim, met, limit }) =>
    ['', what, comparedWith, measured, `${aim} ${met ? '✓' : '✗'}`, limit, ''].join(' | ').trim(),
  )
  const isShared = load > 1
  const run = mode === 'full' ? 'A full run' : `A run of \`--${mode}\``
  return [
    `${run} on ${at.slice(0, 10)}: ${cpu}, ${cores} cores, ${fileSystem}, Node ${node}, SQLite ${sqlite}, load ${load.toFixed(1)} at the start.${isShared ? ' Other programs used the cores meanwhile, so the figures of two runs differ strongly.' : ''}`,
    '',
    '| figure | compared with | measured | aim | measured resource |',
    '|---|---|---|---|---|',
    ...rows,
    '',
  ].join('\n')
}

/** Replaces the table in the text of the page. */
export function withScaleTable(page: string, table: string): string {
  return replaceMarked(page, BEGIN, END, `\n\n${table}\n`)
}

/** Stores the table in the working copy of untag. */
export function writeScale(report: ScaleReport): void {
  writeFileSync(PAGE, withScaleTable(readFileSync(PAGE, 'utf8'), scaleTable(report)))
}
