import type { Randomness } from '../../policy/platform.ts'
import { median, quantile, ratios, samplesOf, type Samples } from './measure.ts'

/** `full` gives stable results. `quick` takes some minutes. `smoke` only tests that every step of a figure runs. */
export const MODES = ['full', 'quick', 'smoke'] as const
export type Mode = (typeof MODES)[number]

/** Sizes of a figure in each mode: rounds, requests, rows. */
export type Sizes = Readonly<Record<Mode, Readonly<Record<string, number | readonly number[]>>>>

/** Environment of a figure. */
export interface Bench {
  readonly mode: Mode
  /** Empty folder for this figure, on the disk to measure. */
  readonly folder: string
  readonly random: Randomness
  /** True to measure Vendure too. If Vendure is missing, it is installed first. */
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
  /** Cost relative to the base row: median of the ratios of all rounds. */
  readonly ratio: number
  readonly quartiles: readonly [number, number]
  /** Other measured values, such as the CPU time of the server. */
  readonly also: Readonly<Record<string, number>>
}

/** A target of a figure: `measured` is compared with `limit`. `text` says which value is required. */
export interface Target {
  readonly text: string
  readonly measured: number
  readonly limit: number
  readonly met: boolean
}

export interface Result {
  readonly title: string
  /** What the numbers measure: CPU time or wall time, and of which process. */
  readonly counts: string
  readonly rows: readonly Row[]
  readonly targets: readonly Target[]
  readonly notes: readonly string[]
}

/** Thrown if this machine lacks a program that the figure needs. The message names the program and its package. */
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

/** Target: the cost of `name` is at most `limit` times that of `base`. */
export function costsAtMost(samples: Samples, name: string, base: string, limit: number): Target {
  const measured = median(ratios(samples, name, base))
  return { text: `${name}: at most ${limit} × the cost of ${base}`, measured, limit, met: measured <= limit }
}

/** Target: the rate of `name` is at least `share` times that of `base`. */
export function ratesAtLeast(samples: Samples, name: string, base: string, share: number): Target {
  const measured = median(ratios(samples, base, name))
  const wanted = share > 1 ? `${share} ×` : `${Math.round(share * 100)} % of`
  return { text: `${name}: at least ${wanted} the rate of ${base}`, measured, limit: share, met: measured >= share }
}
