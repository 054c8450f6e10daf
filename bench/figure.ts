import type { Randomness } from '../policy/platform.ts'
import { median, quantile, ratios, samplesOf, type Samples } from './measure.ts'

/** `full` measures steadily, `quick` takes minutes, `smoke` only shows that every step of a figure still runs. */
export const MODES = ['full', 'quick', 'smoke'] as const
export type Mode = (typeof MODES)[number]

/** How much a figure does in each mode: rounds, requests, rows. */
export type Sizes = Readonly<Record<Mode, Readonly<Record<string, number | readonly number[]>>>>

/** Environment of a figure. */
export interface Bench {
  readonly mode: Mode
  /** An empty folder of the figure's own on the disk that is measured. */
  readonly folder: string
  readonly random: Randomness
  /** Whether Vendure takes part: it is installed when it is not there. */
  readonly vendure: boolean
  /** Prints progress to stderr. */
  note(text: string): void
}

/** One line of a figure's table. */
export interface Row {
  readonly name: string
  /** Median over the rounds, µs per operation. */
  readonly microseconds: number
  readonly perSecond: number
  /** Cost over that of the row that all are compared with: median of the ratios of the rounds, and their quartiles. */
  readonly ratio: number
  readonly quartiles: readonly [number, number]
  /** What else was measured, such as the CPU time of the server. */
  readonly also: Readonly<Record<string, number>>
}

/** What the row `of` is held to: its cost against that of `against`. */
export interface Target {
  readonly text: string
  readonly measured: number
  readonly limit: number
  readonly met: boolean
}

export interface Result {
  readonly title: string
  /** What is counted: CPU time or wall time, and of what. */
  readonly counts: string
  readonly rows: readonly Row[]
  readonly targets: readonly Target[]
  readonly notes: readonly string[]
}

/** Thrown by a figure that needs a program which this machine lacks. The message names it and the package that brings it. */
export class FigureUnavailable extends Error {
  override name = 'FigureUnavailable'
}

export interface Figure {
  readonly sizes: Sizes
  run(bench: Bench): Promise<Result>
}

/** The rows of a table, each compared with `base`. */
export function rowsOf(
  samples: Samples,
  base: string,
  also: Readonly<Record<string, Readonly<Record<string, number>>>> = {},
): Row[] {
  return [...samples.keys()].map((name) => {
    const microseconds = median(samplesOf(samples, name))
    const against = ratios(samples, name, base)
    return {
      name,
      microseconds,
      perSecond: 1e6 / microseconds,
      ratio: median(against),
      quartiles: [quantile(against, 0.25), quantile(against, 0.75)] as const,
      also: also[name] ?? {},
    }
  })
}

/** The cost of `name` may be `limit` times that of `base`. */
export function costsAtMost(samples: Samples, name: string, base: string, limit: number): Target {
  const measured = median(ratios(samples, name, base))
  return { text: `${name}: at most ${limit} × the cost of ${base}`, measured, limit, met: measured <= limit }
}

/** The rate of `name` must be `share` times that of `base`. */
export function ratesAtLeast(samples: Samples, name: string, base: string, share: number): Target {
  const measured = median(ratios(samples, base, name))
  const wanted = share > 1 ? `${share} ×` : `${Math.round(share * 100)} % of`
  return { text: `${name}: at least ${wanted} the rate of ${base}`, measured, limit: share, met: measured >= share }
}
