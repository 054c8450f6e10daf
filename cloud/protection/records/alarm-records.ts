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

/** Names of the devices of these events, by device id. A device without a name has the name of its gate. */
export async function devicesOf(
  db: Db,
  tenant: string,
  events: readonly ProtectionEvent[],
): Promise<Map<string, string>> {
  const ids = [...new Set(events.flatMap(({ deviceId }) => deviceId ?? []))]
  if (ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('device')
    .select(['device_id', 'name', 'gate_id'])
    .where('tenant', '=', tenant)
    .where('device_id', 'in', ids)
    .execute()
  return new Map(
    rows.flatMap(({ device_id, name, gate_id }) => {
      const shown = name ?? gate_id
      return shown === null ? [] : [[device_id, shown] as const]
    }),
  )
}

/** Names of operators and users of the account, by id. */
export async function namesOf(db: Db, tenant: string, ids: readonly string[]): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map()
  const operators = await db
    .selectFrom('operator')
    .select(['operator_id', 'name'])
    .where('tenant', '=', tenant)
    .where('operator_id', 'in', [...ids])
    .execute()
  const users = await db
    .selectFrom('console_user')
    .select(['user_id', 'name', 'email'])
    .where('account_id', '=', tenant.split('.')[0] ?? '')
    .where('user_id', 'in', [...ids])
    .execute()
  return new Map([
    ...operators.map(({ operator_id, name }) => [operator_id, name] as const),
    ...users.map(({ user_id, name, email }) => [user_id, name || email] as const),
  ])
}
