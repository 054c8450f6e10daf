import type { Db } from '../../persistence/database.ts'
import type { ProtectionEventRow } from '../../persistence/tables/protection.ts'

/** Which of what happened in a store is asked for. */
export interface EventFilter {
  storeId: string
  type?: string | undefined
  deviceId?: string | undefined
  purchaseId?: string | undefined
}

/** After which entry a page begins. Entries are in the order of their position, then of their id. */
export interface EventPosition {
  position: number
  id: string
}

/** The part of a listing that may be read. */
export interface EventRange {
  /** Entries from this position on may still be joined by others (finalBelow). */
  below: number
  /** By the time at which the cloud took an entry in, ms. */
  sinceMs: number
}

/** Protection events of a store in the order in which they became durable. */
export function eventsAfter(
  db: Db,
  { storeId, type, deviceId, purchaseId }: EventFilter,
  { below, sinceMs }: EventRange,
  { position, id }: EventPosition,
  limit: number,
): Promise<ProtectionEventRow[]> {
  let query = db
    .selectFrom('protection_event')
    .selectAll()
    .where('store_id', '=', storeId)
    .where('processed_ms', '>=', sinceMs)
  if (type !== undefined) query = query.where('type', '=', type)
  if (deviceId !== undefined) query = query.where('device_id', '=', deviceId)
  if (purchaseId !== undefined) query = query.where('purchase_id', '=', purchaseId)
  return query
    .where(({ eb, refTuple, tuple }) => eb(refTuple('position', 'event_id'), '>', tuple(position, id)))
    .where('position', '<', below)
    .orderBy('position')
    .orderBy('event_id')
    .limit(limit)
    .execute()
}
