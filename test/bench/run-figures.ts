import { FigureUnavailable, type Mode, type Result } from './figure.ts'
import type { Machine } from './machine.ts'
import { asText } from './report.ts'

/** The file that `--json` writes. */
export interface Report {
  readonly at: string
  readonly mode: Mode
  readonly machine: Machine
  readonly figures: Readonly<Record<string, Result>>
  /** Errors of failed figures, by name. */
  readonly failures: Readonly<Record<string, { readonly message: string }>>
  /** Reasons of skipped figures, which this machine cannot run, by name. */
  readonly skipped: Readonly<Record<string, string>>
}

export type Outcome = Pick<Report, 'figures' | 'failures' | 'skipped'>

/** A run of some figures, with its functions for measuring and output. */
export interface Run {
  readonly names: readonly string[]
  readonly mode: Mode
  measure(name: string): Promise<Result>
  /**
   * Called after each figure to store the results so far. Also called before the first figure, so that an unwritable
   * file ends the run early.
   */
  keep(outcome: Outcome): void
  /** Writes to stdout. */
  say(text: string): void
  /** Writes to stderr. */
  warn(text: string): void
}

/** Runs the figures in order. A figure that fails or is skipped is recorded, and the next one runs. */
export async function runFigures({ names, mode, measure, keep, say, warn }: Run): Promise<Outcome> {
  const figures: Record<string, Result> = {}
  const failures: Record<string, { message: string }> = {}
  const skipped: Record<string, string> = {}
  keep({ figures, failures, skipped })
  for (const name of names) {
    try {
      const result = checked(await measure(name))
      // A smoke run is too small to measure speed, so its targets are removed.
      figures[name] = mode === 'smoke' ? { ...result, targets: [] } : result
      say(mode === 'smoke' ? `ran     ${name}` : asText(result))
    } catch (error) {
      if (error instanceof FigureUnavailable) {
        skipped[name] = error.message
        say(`skipped ${name}: ${error.message}`)
        keep({ figures, failures, skipped })
        continue
      }
      const { message, stack } = error instanceof Error ? error : new Error(String(error))
      failures[name] = { message }
      say(`FAILED  ${name}: ${message}\n`)
      warn(stack ?? message)
    }
    keep({ figures, failures, skipped })
  }
  const failed = Object.keys(failures)
  if (failed.length > 0) say(`${failed.length} of ${names.length} figures failed: ${failed.join(', ')}`)
  return { figures, failures, skipped }
}

/** Throws if a row was not measured. JSON would otherwise contain null. */
function checked(result: Result): Result {
  if (result.rows.length === 0) throw new Error('the figure has no rows')
  const missing = result.rows.find(({ microseconds }) => !Number.isFinite(microseconds))
  if (missing) throw new Error(`nothing was measured for the row "${missing.name}"`)
  return result
}
