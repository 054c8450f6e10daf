import { newId } from '../../policy/ids.ts'
import type { Platform } from '../../policy/platform.ts'
import { outcomeOf, type Ledger } from './ledger.ts'

/**
 * After a crash: claims without outcome become `unknown`, which raises an exception, and are never sent
 * again. Whether the lock moved only somebody who looks can say. Runs before any device is opened.
 */
export function recover(ledger: Ledger, storeId: string, nowMs: number, platform: Platform): number {
  const open = ledger.claims.open()
  if (open.length === 0) return 0
  ledger.commits.now(() => {
    for (const claim of open) {
      const { evidence } = outcomeOf(claim.redemption_id, 'unknown')
      ledger.noteOutcome(claim.redemption_id, 'unknown', nowMs, {
        type: 'protection.action.failed',
        eventId: newId('evt', platform),
        occurredAt: new Date(nowMs).toISOString(),
        storeId,
        deviceId: claim.device_id,
        ...(evidence && { replayProtectedNonce: claim.nonce }),
        outcome: 'unknown',
        reason: 'power_loss',
        detail: 'the agent stopped between the claim and its outcome',
      })
    }
  })
  return open.length
}
