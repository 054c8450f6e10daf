import type { Db } from '../../platform/persistence/database.ts'
import type { DeviceRow } from '../../platform/persistence/tables/agents.ts'
import type { ProtectionAuthorizationRow } from '../../platform/persistence/tables/protection.ts'
import { redemptionsOf } from './authorizations.ts'

/** Time after the expiry of a token in which an agent with a slow clock may still honour the token, s. */
const GUARD_SECONDS = 60

/**
 * Authorizations of a device that is moving to another agent. Only authorizations that the former agent may still
 * honour: not voided, not used up, and expired at most a minute ago.
 */
export async function outstandingOf(
  db: Db,
  device: Pick<DeviceRow, 'device_id' | 'agent_id'>,
  nowMs: number,
): Promise<ProtectionAuthorizationRow[]> {
  if (device.agent_id === null) return []
  const rows = await db
    .selectFrom('protection_authorization')
    .selectAll()
    .where('device_id', '=', device.device_id)
    .where('agent_id', '=', device.agent_id)
    .where('exp', '>', Math.floor(nowMs / 1_000) - GUARD_SECONDS)
    // The move has recalled all these leases, so this condition excludes none of them. The condition only makes the
    // query faster, because it excludes other rows early.
    .where('void_asked_ms', 'is not', null)
    .where('voided_ms', 'is', null)
    .execute()
  const open: ProtectionAuthorizationRow[] = []
  for (const row of rows) if ((await redemptionsOf(db, row.nonce)).length < row.count) open.push(row)
  return open
}

/** Latest time at which a device's move ends, s since 1970. */
export async function moveEndsAt(db: Db, device: DeviceRow, nowMs: number): Promise<number> {
  const ends = (await outstandingOf(db, device, nowMs)).map(({ exp }) => exp + GUARD_SECONDS)
  return Math.max(Math.ceil(nowMs / 1_000), ...ends)
}
