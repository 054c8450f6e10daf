import type { ProtectionEvent } from '../../../policy/protection-events.ts'
import { closeRequestForAlarm } from '../../shop/assistance/requests.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { GATE_ALARMS } from '../../../policy/vocabulary.ts'
import { EARLIER_LIMIT, earlierOf, toDisposition } from './disposition.ts'
import type { AlarmDispositionRow, ProtectionEventRow } from '../../platform/persistence/tables/protection.ts'

/** The tenant's gate alarm with this event id, if any. */
export async function findAlarm(db: Db, tenant: string, eventId: string): Promise<ProtectionEventRow | undefined> {
  const row = await db
    .selectFrom('protection_event')
    .selectAll()
    .where('event_id', '=', eventId)
    .where('tenant', '=', tenant)
    .where('type', '=', 'protection.exception.raised')
    .executeTakeFirst()
  const { reason } = row ? (JSON.parse(row.body) as ProtectionEvent) : {}
  return reason !== undefined && GATE_ALARMS.has(reason) ? row : undefined
}

/** Dispositions of alarms by event id. */
export async function dispositionsOf(
  db: Db,
  tenant: string,
  eventIds: readonly string[],
): Promise<Map<string, AlarmDispositionRow>> {
  if (eventIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('alarm_disposition')
    .selectAll()
    .where('event_id', 'in', [...eventIds])
    .where('tenant', '=', tenant)
    .execute()
  return new Map(rows.map((row) => [row.event_id, row]))
}

/**
 * Stores the disposition of an alarm, acknowledges its exception, and closes the call for help. The disposition with the latest time
 * counts, so a row that an offline agent sends late does not replace a newer disposition. The earlier ones stay.
 */
export async function writeDisposition(db: Db, row: AlarmDispositionRow): Promise<void> {
  const { disposition, operator_id, recovered_cent, disposed_ms } = row
  const before = (await dispositionsOf(db, row.tenant, [row.event_id])).get(row.event_id)
  const earlier = before && JSON.stringify([toDisposition(before), ...earlierOf(before)].slice(0, EARLIER_LIMIT))
  await db
    .insertInto('alarm_disposition')
    .values(row)
    .onConflict((c) =>
      c
        .columns(['event_id', 'tenant'])
        .doUpdateSet({ disposition, operator_id, recovered_cent, disposed_ms, earlier: earlier ?? null })
        .where('alarm_disposition.disposed_ms', '<=', disposed_ms),
    )
    .execute()
  const about = { storeId: row.store_id, eventId: row.event_id, atMs: disposed_ms }
  await acknowledgeAlarm(db, { ...about, by: operator_id })
  await closeRequestForAlarm(db, about)
}

/** Acknowledges the open exception of an alarm. Does nothing if the same tag has caused a newer alarm. */
export async function acknowledgeAlarm(
  db: Db,
  { storeId, eventId, by, atMs }: { storeId: string; eventId: string; by: string; atMs: number },
): Promise<void> {
  await db
    .updateTable('protection_exception')
    .set({ acknowledged_ms: atMs, acknowledged_by: by })
    .where('store_id', '=', storeId)
    .where('kind', 'in', [...GATE_ALARMS])
    .where('event_id', '=', eventId)
    .where('acknowledged_ms', 'is', null)
    .execute()
}
