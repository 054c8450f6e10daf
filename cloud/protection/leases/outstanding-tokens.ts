import type { Db } from '../../persistence/database.ts'
import type { DeviceRow } from '../../persistence/tables/agents.ts'
import type { ProtectionAuthorizationRow } from '../../persistence/tables/protection.ts'
import { redemptionsOf } from './authorizations.ts'

/** How long after its end a clock that is behind may still honour a token, seconds. */
const GUARD_SECONDS = 60

/** Authorizations for a moving device that its present agent may still honour: not given up, not used up, and not over for as long as a clock may be wrong. */
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
    // Asked of all of them when the device began to move, so that few rows are looked at.
    .where('void_asked_ms', 'is not', null)
    .where('voided_ms', 'is', null)
    .execute()
  const open: ProtectionAuthorizationRow[] = []
  for (const row of rows) if ((await redemptionsOf(db, row.nonce)).length < row.count) open.push(row)
  return open
}

/** When a device on its way to another agent is there at the latest, seconds since 1970. */
export async function moveEndsAt(db: Db, device: DeviceRow, nowMs: number): Promise<number> {
  const ends = (await outstandingOf(db, device, nowMs)).map(({ exp }) => exp + GUARD_SECONDS)
  return Math.max(Math.ceil(nowMs / 1_000), ...ends)
}
