import type { Result, Row } from './figure.ts'

const HEADINGS = ['', 'µs/op', 'op/s', 'ratio', 'quartiles'] as const

/** Formats a figure as a table for people. */
export function asText({ title, counts, rows, targets, notes }: Result): string {
  const extras = [...new Set(rows.flatMap((row) => Object.keys(row.also)))]
  const table = [[...HEADINGS, ...extras], ...rows.map((row) => cellsOf(row, extras))]
  const widths = (table[0] ?? []).map((_, column) => Math.max(...table.map((line) => line[column]?.length ?? 0)))
  const padded = (cell: string, column: number) =>
    column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)
  const lines = table.map((line) => line.map(padded).join('  '))
  const verdicts = targets.map(
    ({ text, measured, met }) => `${met ? 'met   ' : 'MISSED'} ${measured.toFixed(2)}  ${text}`,
  )
  return [title, `(${counts})`, '', ...lines, '', ...verdicts, ...notes.map((note) => `note   ${note}`), ''].join('\n')
}

function cellsOf(
  { name, microseconds, perSecond, ratio, quartiles: [low, high], also }: Row,
  extras: readonly string[],
): string[] {
  const spread = `${low.toFixed(2)}–${high.toFixed(2)}`
  const rate = Math.round(perSecond).toLocaleString('en')
  const more = extras.map((key) => (also[key] === undefined ? '' : number(also[key])))
  return [name, number(microseconds), rate, ratio.toFixed(2), spread, ...more]
}

function number(value: number): string {
  return value < 100 ? value.toFixed(1) : Math.round(value).toLocaleString('en')
}
