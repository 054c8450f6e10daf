import { Failure } from '../../platform/foundation/failure.ts'
import type { DeviceCapabilities } from '../../../policy/devices.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Db } from '../../platform/persistence/database.ts'

/** Time after a restore in which agents may still use tokens that the restored cloud does not know, ms (ADR restored-cloud). */
export const RESYNC_MS = 11 * 60_000
const RETRY_SECONDS = 10

/**
 * Throws `unavailable` with `retryAfter` while agents of the store may know of uses that the restored cloud lost, or
 * devices that work offline may hold tokens that it lost.
 */
export async function assertResynced(
  { db, nowMs, services }: Pick<Call, 'db' | 'nowMs' | 'services'>,
  storeId: string,
): Promise<void> {
  const leftMs = services.authority.restoredMs + RESYNC_MS - nowMs
  if (leftMs <= 0) return
  const awaited = await db
    .selectFrom('agent')
    .select('agent_id')
    .where('store_id', '=', storeId)
    .where('resync', '=', 'awaited')
    .where('revoked_ms', 'is', null)
    .limit(1)
    .executeTakeFirst()
  if (!awaited && !(await hasOfflineDevice(db, storeId))) return
  const retryAfter = Math.min(RETRY_SECONDS, Math.ceil(leftMs / 1_000))
  throw new Failure(
    'unavailable',
    'the cloud was restored from a backup and grants nothing here until the store’s agents have reported recent uses: try again',
    { reason: 'resyncing', retryAfter },
  )
}

/** True if a device without an agent may hold a token that the restored cloud does not know. */
async function hasOfflineDevice(db: Db, storeId: string): Promise<boolean> {
  const rows = await db
    .selectFrom('device')
    .select('capabilities')
    .where('store_id', '=', storeId)
    .where('agent_id', 'is', null)
    .where('revoked_ms', 'is', null)
    .execute()
  return rows.some(({ capabilities }) => (JSON.parse(capabilities) as DeviceCapabilities).supportsOfflineAuth)
}

/** Marks that the agent has sent all its rows again to the restored cloud. */
export async function markResynced(
  { db, services }: Pick<Call, 'db' | 'services'>,
  agentId: string,
  cloudGeneration: number,
): Promise<void> {
  if (cloudGeneration !== services.authority.cloudGeneration) return
  await db
    .updateTable('agent')
    .set({ resync: null })
    .where('agent_id', '=', agentId)
    .where('resync', 'is not', null)
    .execute()
}
