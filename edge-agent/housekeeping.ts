import { LEDGER_DAYS, type PolicyClaims } from '../policy/documents/store-documents.ts'
import type { Cancel, Timers } from '../policy/platform.ts'
import { LedgerFull } from './ledger/file/commit.ts'
import type { Ledger } from './ledger/ledger.ts'
import type { Log } from './log.ts'
import type { AgentClock } from './trust/time/clock.ts'

/** The agent deletes claims and denials this time after they expire, s. */
const KEEP_AFTER_END = 3_600
const DAY_MS = 86_400_000
/** A till must not repeat a number of a sale within this time (ADR till-sales). */
const SALES_DAYS = 90
/** The cloud may be restored, and then needs the reports about tags again. */
const TAGS_DAYS = 14
const HOUSEKEEPING_MS = 600_000

/**
 * Prunes the ledger at regular intervals. Returns a function that stops the pruning. `onRun` receives trusted time at
 * each interval. The policy (`trust.policy`) can shorten the time for which the agent stores acknowledged rows: a cloud
 * that was restored from a backup may need them again.
 */
export function startHousekeeping({
  ledger,
  clock,
  trust,
  timers,
  log,
  onRun,
}: {
  ledger: Ledger
  clock: AgentClock
  trust: { readonly policy: Pick<PolicyClaims, 'ledgerDays'> | undefined }
  timers: Timers
  log: Log
  onRun(nowMs: number): void
}): Cancel {
  let cancel: Cancel = () => undefined
  const logError = (error: unknown) => {
    if (error instanceof LedgerFull) log.warn({}, 'the disk is full: the ledger is pruned later')
    else log.error({ err: error }, 'the ledger could not be pruned')
  }
  const schedule = () => {
    cancel = timers.after(HOUSEKEEPING_MS, () => {
      const { nowMs: now, trust: timeTrust } = clock.now()
      const prune = () => {
        ledger.claims.prune(Math.floor(now / 1_000) - KEEP_AFTER_END)
        ledger.homeGrants.prune(Math.floor(now / 1_000) - KEEP_AFTER_END)
        ledger.homeRequests.prune(Math.floor(now / 1_000) - KEEP_AFTER_END)
        ledger.till.prune(now - TAGS_DAYS * DAY_MS, now - SALES_DAYS * DAY_MS, ledger.journal.acked, now)
        ledger.journal.prune(now - (trust.policy?.ledgerDays ?? LEDGER_DAYS) * DAY_MS)
      }
      if (timeTrust !== 'none') onRun(now)
      // After pruning, the ledger refuses tokens and receipts that are as old as the deleted claims. If the agent
      // pruned by a wrong hardware clock, the ledger would block all releases. Therefore the agent prunes only by
      // signed time.
      if (timeTrust === 'signed') ledger.commits.durably(prune).catch(logError)
      schedule()
    })
  }
  schedule()
  return () => cancel()
}
