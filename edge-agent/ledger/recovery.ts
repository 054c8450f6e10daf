import { newId } from '../../policy/ids.ts'
import type { Platform } from '../../policy/platform.ts'
import { outcomeEvidence } from './claims/claim-request.ts'
import { LedgerFull } from './file/commit.ts'
import type { Ledger } from './ledger.ts'

/**
 * Stores the outcome `unknown` for each claim that a crash left without an outcome. Staff must then check the goods,
 * because the agent never repeats the command of such a claim. Call this function before any device opens. If the disk
 * is full, passes the outcomes to `whenFull`, so that gates still work (P6). Returns the number of these claims.
 */
export function recoverClaims(
  ledger: Ledger,
  storeId: string,
  nowMs: number,
  platform: Platform,
  whenFull?: Ledger['recordOutcome'],
): number {
  const open = ledger.claims.unsettled().map(({ redemption_id: redemptionId, device_id: deviceId, nonce }) => {
    const { evidence } = outcomeEvidence(redemptionId, 'unknown')
    const event = {
      // The API has no event for an unknown outcome; `outcome` says it.
      type: 'protection.action.failed' as const,
      eventId: newId('evt', platform),
      occurredAt: new Date(nowMs).toISOString(),
      storeId,
      deviceId,
      ...(evidence && { replayProtectedNonce: nonce }),
      outcome: 'unknown' as const,
      reason: 'power_loss',
      detail: 'the agent stopped between the claim and its outcome',
    }
    return { redemptionId, event }
  })
  if (open.length === 0) return 0
  const noteAll = (note: Ledger['recordOutcome']) => {
    for (const { redemptionId, event } of open) note(redemptionId, 'unknown', nowMs, event)
  }
  try {
    ledger.commits.now(() => noteAll((...outcome) => ledger.recordOutcome(...outcome)))
  } catch (error) {
    if (!(error instanceof LedgerFull) || !whenFull) throw error
    noteAll(whenFull)
  }
  return open.length
}
