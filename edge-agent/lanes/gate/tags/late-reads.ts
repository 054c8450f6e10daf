import type { Cancel, Timers } from '../../../../policy/platform.ts'

/** Reports reads that came too late to cause an alarm, in at most one line per 5 s. */
export interface LateReads {
  add(tag: string, ageMs: number): void
  stop(): void
}

const REPORT_AFTER_MS = 5_000
const UNPAID_LIMIT = 1_000

/** `report` receives the lines, which are for staff. */
export function lateReads(
  timers: Timers,
  isUnpaid: (tag: string) => boolean,
  report: (detail: string) => void,
): LateReads {
  let count = 0
  let oldestMs = 0
  let unpaid = new Set<string>()
  let timer: Cancel | undefined

  function finish(): void {
    timer = undefined
    report(
      `${count} reads came too late to alarm, the oldest ${Math.round(oldestMs / 1_000)} s; ${unpaid.size >= UNPAID_LIMIT ? 'over ' : ''}${unpaid.size} unpaid items among them`,
    )
    count = 0
    oldestMs = 0
    unpaid = new Set()
  }

  return {
    add(tag, ageMs) {
      count++
      oldestMs = Math.max(oldestMs, ageMs)
      if (unpaid.size < UNPAID_LIMIT && isUnpaid(tag)) unpaid.add(tag)
      timer ??= timers.after(REPORT_AFTER_MS, finish)
    },
    stop: () => timer?.(),
  }
}
