import type { Services } from '../operations/operation.ts'
import type { Database } from '../persistence/database.ts'
import type { PurchaseRow } from '../persistence/tables/purchases.ts'
import { areGatesUpToDate } from '../protection/receipt-home/gate-freshness.ts'
import { pause } from '../../policy/platform.ts'

/** What a shopper who has paid is told about the gate; undefined: nothing. */
export type ExitAdvice = 'leave' | 'show_receipt' | undefined

/** The gates are waited for this long, in such steps, ms (contracts §4). */
const WAIT_MS = 2_000
const STEP_MS = 200
/** A purchase that was paid longer ago is not waited for: what gates do not know by then they may not learn. */
const FRESH_MS = 60_000

/** Looks whether the store's gates know of the payment, and waits shortly for it when it was made just now. */
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
