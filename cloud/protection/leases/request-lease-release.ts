import { pause } from '../../../policy/platform.ts'
import type { WaitForRelease } from '../../platform/operations/lease-recall.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { ProtectionAuthorizationRow } from '../../platform/persistence/tables/protection.ts'
import { findAuthorization, redemptionsOf, updateAuthorization } from './authorizations.ts'

/**
 * Maximum wait for the lease holders, ms. The wait is short, because a shopper waits at the requesting device (ADR
 * 0011).
 */
const WAIT_MS = 1_000
/** Time between two checks, ms. */
const STEP_MS = 25

/**
 * Recalls these leases and makes the cloud run the call again before it denies the request. Each call waits at most
 * once.
 */
export function requestLeaseRelease(call: Call, held: readonly ProtectionAuthorizationRow[]): void {
  if (held.length > 0) call.recallLeaseAndRetry((db) => requestEach(call, db, held))
}

async function requestEach(
  { services, nowMs }: Call,
  db: Db,
  held: readonly ProtectionAuthorizationRow[],
): Promise<WaitForRelease> {
  const { agents, platform } = services
  for (const row of held) {
    if (row.void_asked_ms !== null) continue
    await updateAuthorization(db, row, { void_asked_ms: nowMs })
  }
  return async (reads) => {
    for (const { store_id: storeId, agent_id: agentId, nonce } of held)
      if (agentId !== null) agents.sendCommand({ storeId, agentId }, { command: 'void', nonce })
    // An offline agent receives the command only when it reconnects, so the call does not wait for offline agents.
    const reachable = held.filter(({ agent_id: agentId }) => agentId !== null && agents.isConnected(agentId))
    for (let waited = 0; reachable.length > 0 && waited < WAIT_MS; waited += STEP_MS) {
      if (await areSettled(reads, reachable)) return
      await pause(platform.timers, STEP_MS)
    }
  }
}

/** True if each authorization was voided or fully used. */
async function areSettled(reads: Db, rows: readonly ProtectionAuthorizationRow[]): Promise<boolean> {
  for (const { nonce } of rows) {
    const row = await findAuthorization(reads, nonce)
    if (row && row.voided_ms === null && (await redemptionsOf(reads, nonce)).length < row.count) return false
  }
  return true
}
