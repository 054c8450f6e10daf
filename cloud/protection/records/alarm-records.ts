import type { ProtectionEvent } from '../../../policy/protection-events.ts'
import type { Db } from '../../persistence/database.ts'
import type { ProtectionExceptionRow } from '../../persistence/tables/protection.ts'

/** What several alarms need, each read with one query. */

/** Events by id. */
export async function eventsOf(
  db: Db,
  tenant: string,
  eventIds: readonly string[],
): Promise<Map<string, ProtectionEvent>> {
  if (eventIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('protection_event')
    .select(['event_id', 'body'])
    .where('tenant', '=', tenant)
    .where('event_id', 'in', [...eventIds])
    .execute()
  return new Map(rows.map(({ event_id, body }) => [event_id, JSON.parse(body) as ProtectionEvent]))
}

/** Exceptions of a store by the event that raised them last. */
export async function exceptionsOf(
  db: Db,
  storeId: string,
  eventIds: readonly string[],
): Promise<Map<string, ProtectionExceptionRow>> {
  if (eventIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('protection_exception')
    .selectAll()
    .where('store_id', '=', storeId)
    .where('event_id', 'in', [...eventIds])
    .execute()
  return new Map(rows.map((row) => [row.event_id ?? '', row]))
}
