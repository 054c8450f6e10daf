import { retryDelays, type Cancel, type Platform } from '../../policy/platform.ts'
import type { OutcomeReport } from '../ledger/home/stored-home-requests.ts'
import type { Ledger } from '../ledger/ledger.ts'

/**
 * Delivers outcome reports to the receipt home. The agent stores each report and retries with pauses of at most 30 s.
 * Until the receipt home has the report, the receipt home reserves the unused rights and rejects cloud tokens for these
 * rights.
 */
export interface OutcomeReporter {
  /** Sends the due reports about this receipt to this receipt home. Call it before a new request. */
  reportFirst(home: string, cti: string): Promise<DeliveryResult>
  /** Sends all due reports now, and retries the undelivered ones. Never throws. */
  kick(): Promise<void>
  /** Abandons a request that no claim will use, and sends its report. */
  abandon(redemptionId: string): void
  /** Sends the reports that were stored before the restart. */
  start(): void
  stop(): Promise<void>
}

/**
 * `obsolete`: no agent is left that needs the report. `undelivered`: no valid answer. `too many`: the rate limit of the
 * receipt home is exceeded. `no home`: the receipt home has another policy version.
 */
export type DeliveryResult = 'delivered' | 'obsolete' | 'undelivered' | 'too many' | 'no home'

export interface OutcomeReporterParts {
  platform: Platform
  ledger: Pick<Ledger, 'commits' | 'homeRequests'>
  send(report: OutcomeReport): Promise<DeliveryResult>
  /** True while a running request may still use this id. */
  isWatched(redemptionId: string): boolean
  /** True if the cloud is online and trusts this ledger. */
  isLedgerTrusted(): boolean
}

const FIRST_RETRY_MS = 100
const LONGEST_RETRY_MS = 30_000

const isFinal = (result: DeliveryResult) => result === 'delivered' || result === 'obsolete'

/** Opens the reporter. The reporter retries as long as the agent runs. */
export function openOutcomeReporter({
  platform,
  ledger,
  send,
  isWatched,
  isLedgerTrusted,
}: OutcomeReporterParts): OutcomeReporter {
  const { commits, homeRequests } = ledger
  let delays = newDelays()
  let retry: Cancel | undefined
  let running = Promise.resolve()
  /** The next round, which has not started yet. The round sends all reports that exist when the round starts. */
  let next: Promise<void> | undefined
  let isStopped = false

  function newDelays() {
    return retryDelays(platform.random, FIRST_RETRY_MS, LONGEST_RETRY_MS)
  }

  async function sendOne(report: OutcomeReport): Promise<DeliveryResult> {
    const result = await send(report)
    if (isFinal(result)) await commits.durably(() => homeRequests.noteDelivered(report.redemptionId))
    return result
  }

  /** Returns the ids of open requests without a timer, such as requests of an earlier process. */
  const orphaned = () => homeRequests.openIds().filter((redemptionId) => !isWatched(redemptionId))

  async function sendAll(): Promise<void> {
    // A restored ledger may lack the claim that used a request. So the agent abandons requests only if the cloud trusts
    // this ledger.
    const abandoned = isLedgerTrusted() ? orphaned() : []
    if (abandoned.length > 0) await commits.durably(() => abandoned.forEach(homeRequests.abandon))
    const unreachable = new Set<string>()
    for (const report of homeRequests.dueReports()) {
      if (isStopped) return
      if (!unreachable.has(report.home) && !isFinal(await sendOne(report))) unreachable.add(report.home)
    }
  }

  async function round(): Promise<void> {
    next = undefined
    retry?.()
    retry = undefined
    if (isStopped) return
    // If the disk is full, the reports stay stored, and the next round sends them again.
    await sendAll().catch(() => undefined)
    if (isStopped) return
    if (homeRequests.hasReports || orphaned().length > 0)
      retry = platform.timers.after(delays.next().value, () => void kick())
    else delays = newDelays()
  }

  function kick(): Promise<void> {
    next ??= running = running.then(round)
    return next
  }

  return {
    async reportFirst(home, cti) {
      for (const report of homeRequests.dueReports()) {
        const result = report.home === home && report.cti === cti ? await sendOne(report) : 'delivered'
        if (!isFinal(result)) return result
      }
      return 'delivered'
    },
    kick,
    abandon(redemptionId) {
      if (isStopped || !homeRequests.isOpen(redemptionId)) return
      commits.durably(() => homeRequests.abandon(redemptionId)).then(kick, kick)
    },
    start: () => void kick(),
    stop() {
      isStopped = true
      retry?.()
      return running
    },
  }
}
