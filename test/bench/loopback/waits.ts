import type { Row } from '../figure.ts'
import { quantile } from '../measure.ts'

/** Rows with median and p95 of what a person waits for, ms. `base`: the median that all are compared with. */
export function waitRows(name: string, waits: readonly number[], base: number): Row[] {
  return [waitRow(`${name}, median`, quantile(waits, 0.5), base), waitRow(`${name}, p95`, quantile(waits, 0.95), base)]
}

/** A row with one wait, ms. */
export function waitRow(name: string, ms: number, base: number): Row {
  const ratio = ms / base
  return { name, microseconds: ms * 1_000, perSecond: 1_000 / ms, ratio, quartiles: [ratio, ratio], also: { ms } }
}
