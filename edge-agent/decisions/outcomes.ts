import type { ProtectionEvent } from '../../policy/protection-events.ts'
import type { Cancel, Timers } from '../../policy/platform.ts'
import type { Outcome } from '../../policy/vocabulary.ts'
import { LedgerFull } from '../ledger/file/commit.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Log } from '../log.ts'

/**
 * Stores the outcomes of claims in the ledger. If the disk is full after the device has moved, the outcome waits in
 * memory and the request continues. If the process ends while the disk is full, the next start stores `unknown`
 * (ledger/recovery.ts).
 */
export interface Outcomes {
  /** Resolves when the outcome is durable; if the disk is full, when the outcome is in memory. */
  settle(redemptionId: string, outcome: Outcome, atMs: number, event: ProtectionEvent): Promise<void>
  /** Keeps the outcome in memory until the disk has room. */
  retryLater(redemptionId: string, outcome: Outcome, atMs: number, event?: ProtectionEvent): void
  /** Makes a last attempt to store the outcomes in memory. */
  stop(): Promise<void>
}

/** Interval between attempts, ms. */
const RETRY_MS = 1_000
/** Maximum outcomes in memory. A full disk refuses new claims, so only devices that are moving add outcomes. */
const WAITING_LIMIT = 1_000

/** Opens the outcomes of this ledger's claims. */
export function openOutcomes({
  ledger,
  timers,
  log,
}: {
  ledger: Pick<Ledger, 'settle'>
  timers: Timers
  log: Log
}): Outcomes {
  const waiting = new Map<string, () => Promise<void>>()
  let cancel: Cancel | undefined

  /** Stores the outcomes in order until the disk is full again. */
  async function tryAll(): Promise<void> {
    for (const [redemptionId, write] of waiting) {
      try {
        await write()
      } catch (error) {
        if (error instanceof LedgerFull) return
        log.error({ err: error, redemptionId }, 'an outcome could not be stored')
      }
      waiting.delete(redemptionId)
    }
  }

  function tryLater(): void {
    cancel ??= timers.after(RETRY_MS, () => {
      void tryAll().then(() => {
        cancel = undefined
        if (waiting.size > 0) tryLater()
      })
    })
  }

  function wait(redemptionId: string, outcome: Outcome, write: () => Promise<void>): void {
    log.warn({ redemptionId, outcome }, 'the disk is full: an outcome is stored when there is room')
    waiting.set(redemptionId, write)
    tryLater()
  }

  return {
    async settle(redemptionId, outcome, atMs, event) {
      const write = () => ledger.settle(redemptionId, outcome, atMs, event)
      try {
        await write()
      } catch (error) {
        if (!(error instanceof LedgerFull) || waiting.size >= WAITING_LIMIT) throw error
        wait(redemptionId, outcome, write)
      }
    },
    retryLater: (redemptionId, outcome, atMs, event) =>
      wait(redemptionId, outcome, () => ledger.settle(redemptionId, outcome, atMs, event)),
    async stop() {
      cancel?.()
      await tryAll()
    },
  }
}
