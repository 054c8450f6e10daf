import type { Clock } from '../../../policy/platform.ts'
import type { Progress } from './run-parts.ts'
import { sumOf } from './state.ts'

/** Time between two lines if the output is no terminal, ms. */
const LINE_EVERY_MS = 30_000

/** Shows the progress of a run: on one line of a terminal, otherwise as a new line every 30 s. */
export function progressLine(
  out: { isTTY?: boolean; write(text: string): void },
  clock: Pick<Clock, 'elapsed'>,
): Progress {
  let shownAt = -LINE_EVERY_MS
  const end = out.isTTY === true ? '\u001b[K\r' : '\n'
  return {
    show({ part, done, of, violations, perSecond, at }) {
      if (out.isTTY !== true && clock.elapsed() - shownAt < LINE_EVERY_MS) return
      shownAt = clock.elapsed()
      const left = perSecond > 0 ? `, ${minutes((of - done) / perSecond)} left` : ''
      const wrong = violations > 0 ? `, ${violations} did not hold` : ''
      out.write(
        `${part.name.padEnd(12)} ${done.toLocaleString('en')} of ${of.toLocaleString('en')} ${part.unit}, ${Math.floor((100 * done) / of)} %${left}${wrong}${at === undefined ? '' : `: ${at}`}${end}`,
      )
    },
    end({ name, unit, skipped, ...state }) {
      const { done, violations } = sumOf(state)
      const result =
        skipped === undefined
          ? `${done.toLocaleString('en')} ${unit}, ${violations.length === 0 ? 'all held' : `${violations.length} DID NOT HOLD`}`
          : `left out: ${skipped}`
      out.write(`${name.padEnd(12)} ${result}${out.isTTY === true ? '\u001b[K' : ''}\n`)
      for (const text of violations.slice(0, 10)) out.write(`  ${text}\n`)
      shownAt = -LINE_EVERY_MS
    },
  }
}

function minutes(seconds: number): string {
  return seconds < 120 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`
}
