import type { PageContext } from '../frame/page.ts'
import { Table } from './table.tsx'

/** One bar: what it counts, and how many. */
export interface Bar {
  readonly label: string
  readonly value: number
  /** Further columns of its row. */
  readonly more?: readonly number[]
}

/** Numbers as a table in which each row has its bar. `more`: names of further columns. */
export function BarTable({
  at,
  caption,
  name,
  value,
  more = [],
  bars,
}: {
  at: Pick<PageContext, 'formats'>
  caption: string
  name: string
  value: string
  more?: readonly string[]
  bars: readonly Bar[]
}) {
  const highest = Math.max(1, ...bars.map((bar) => bar.value))
  return (
    <Table
      caption={caption}
      rows={bars}
      columns={[
        {
          label: name,
          kind: 'head',
          cell: (bar) => (
            <>
              {bar.label}
              <svg class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
                <rect width={(bar.value / highest) * 100} height="6" />
              </svg>
            </>
          ),
        },
        { label: value, kind: 'number' as const, cell: (bar) => at.formats.number(bar.value) },
        ...more.map((label, index) => ({
          label,
          kind: 'number' as const,
          cell: (bar: Bar) => at.formats.number(bar.more?.[index] ?? 0),
        })),
      ]}
    />
  )
}

/** Height of the chart and width of a column, in units of the drawing. */
const [HEIGHT, COLUMN] = [60, 10]

/** Numbers in a fixed order, such as the hours of a day, as columns. Screen readers read the same numbers as a list. */
export function ColumnChart({
  at,
  caption,
  bars,
}: {
  at: Pick<PageContext, 'formats'>
  caption: string
  bars: readonly Bar[]
}) {
  const highest = Math.max(1, ...bars.map(({ value }) => value))
  return (
    <figure class="chart">
      <svg viewBox={`0 0 ${bars.length * COLUMN} ${HEIGHT + 14}`} aria-hidden="true">
        {bars.map(({ value }, n) => {
          const height = (value / highest) * HEIGHT
          return <rect x={n * COLUMN + 1} y={HEIGHT - height} width={COLUMN - 2} height={height} />
        })}
        <path d={`M0 ${HEIGHT}h${bars.length * COLUMN}`} />
        {bars.map(({ label }, n) =>
          n % 3 === 0 ? (
            <text x={n * COLUMN + COLUMN / 2} y={HEIGHT + 10}>
              {label}
            </text>
          ) : null,
        )}
      </svg>
      <figcaption class="spoken">{caption}</figcaption>
      <ul class="spoken">
        {bars
          .filter(({ value }) => value > 0)
          .map(({ label, value }) => (
            <li>
              {label}: {at.formats.number(value)}
            </li>
          ))}
      </ul>
    </figure>
  )
}
