/** A value of a chart. `text` is the value as people read it. */
interface ChartPoint {
  readonly label: string
  readonly value: number
  readonly text: string
}

const [WIDTH, HEIGHT, BOTTOM, TOP] = [640, 200, 24, 8]
/** Maximum number of labels below a chart. */
const LABELS = 8

/** Bars, one for each point. Screen readers read title and values. */
export function BarChart({ title, points }: { title: string; points: readonly ChartPoint[] }) {
  const most = Math.max(...points.map(({ value }) => value), 1)
  const step = WIDTH / Math.max(points.length, 1)
  const full = HEIGHT - BOTTOM - TOP
  return (
    <figure>
      <figcaption>{title}</figcaption>
      <svg class="chart" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={spoken(title, points)}>
        <Grid />
        {points.map(({ label, value, text }, n) => {
          const height = (full * Math.max(0, value)) / most
          return (
            <rect
              class="bar"
              rx="3"
              x={round(n * step + step * 0.18)}
              width={round(step * 0.64)}
              y={round(TOP + full - height)}
              height={round(height)}
            >
              <title>{`${label}: ${text}`}</title>
            </rect>
          )
        })}
        <Labels points={points} step={step} />
      </svg>
    </figure>
  )
}

/** A line with the area below it. */
export function LineChart({ title, points }: { title: string; points: readonly ChartPoint[] }) {
  const step = WIDTH / Math.max(points.length, 1)
  const line = pathOf(points, { step, offset: step / 2, top: TOP, height: HEIGHT - BOTTOM - TOP })
  const [left, right] = [round(step / 2), round(WIDTH - step / 2)]
  return (
    <figure>
      <figcaption>{title}</figcaption>
      <svg class="chart" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={spoken(title, points)}>
        <Grid />
        <path class="area" d={`${line}L${right} ${HEIGHT - BOTTOM}L${left} ${HEIGHT - BOTTOM}Z`} />
        <path class="line" d={line} />
        <Labels points={points} step={step} />
      </svg>
    </figure>
  )
}

/** A small line without labels, beside a figure. */
export function Sparkline({ title, values }: { title: string; values: readonly number[] }) {
  const points = values.map((value) => ({ label: '', value, text: '' }))
  const step = 96 / Math.max(points.length - 1, 1)
  return (
    <svg class="chart spark" viewBox="0 0 96 28" role="img" aria-label={title}>
      <path class="line" d={pathOf(points, { step, offset: 0, top: 2, height: 24 })} />
    </svg>
  )
}

function Grid() {
  const full = HEIGHT - BOTTOM - TOP
  return (
    <>
      {[0, 0.5, 1].map((share) => (
        <line class="grid-line" x1="0" x2={WIDTH} y1={round(TOP + full * share)} y2={round(TOP + full * share)} />
      ))}
    </>
  )
}

function Labels({ points, step }: { points: readonly ChartPoint[]; step: number }) {
  const every = Math.ceil(points.length / LABELS)
  return (
    <>
      {points.map(({ label }, n) =>
        n % every === 0 ? (
          <text x={round(n * step + step / 2)} y={HEIGHT - 7} text-anchor="middle">
            {label}
          </text>
        ) : null,
      )}
    </>
  )
}

function pathOf(
  points: readonly ChartPoint[],
  { step, offset, top, height }: { step: number; offset: number; top: number; height: number },
): string {
  const most = Math.max(...points.map(({ value }) => value), 1)
  return points
    .map(
      ({ value }, n) =>
        `${n === 0 ? 'M' : 'L'}${round(n * step + offset)} ${round(top + height - (height * value) / most)}`,
    )
    .join('')
}

function spoken(title: string, points: readonly ChartPoint[]): string {
  return `${title}. ${points.map(({ label, text }) => `${label}: ${text}`).join('; ')}`
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
