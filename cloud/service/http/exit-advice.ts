import type { Services } from '../../platform/operations/operation.ts'
import type { Database } from '../../platform/persistence/database.ts'
import type { PurchaseRow } from '../../platform/persistence/tables/purchases.ts'
import { areGatesUpToDate } from '../../protection/receipt-home/home-move.ts'
import { pause } from '../../../policy/platform.ts'

/** Advice to a shopper who has paid; undefined: no advice. */
export type ExitAdvice = 'leave' | 'show_receipt' | undefined

/** Maximum wait for the gates, and interval between checks, ms (ADR gates). */
const WAIT_MS = 2_000
const STEP_MS = 200
/** Maximum age of a payment for which the page waits, ms. If a gate lacks an older payment, the gate may be offline. */
const FRESH_MS = 60_000

/** Checks whether the store's gates have received the paid status. Waits up to 2 s after a recent payment. */
export async function exitAdvice(
  database: Database,
  { platform }: Services,
  purchase: PurchaseRow,
): Promise<ExitAdvice> {
  if (purchase.status !== 'SUCCESS' || purchase.completed_ms === null) return undefined
  const isFresh = platform.clock.wall() - purchase.completed_ms < FRESH_MS
  for (let waited = 0; ; waited += STEP_MS) {
    const known = await areGatesUpToDate(database.reads, purchase)
    if (known === undefined) return undefined
    if (known) return 'leave'
    if (!isFresh || waited >= WAIT_MS) return 'show_receipt'
    await pause(platform.timers, STEP_MS)
  }
}
