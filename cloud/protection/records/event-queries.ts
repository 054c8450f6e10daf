import type { Db } from '../../platform/persistence/database.ts'
import type { ProtectionEventRow } from '../../platform/persistence/tables/protection.ts'

/** Filter of a listing of events. */
export interface EventFilter {
  storeId: string
  type?: string | undefined
  deviceId?: string | undefined
  purchaseId?: string | undefined
}

/** The page starts after this event. Events are ordered by position, then by id. */
export interface EventPosition {
  position: number
  id: string
}

/** Range of events that a listing may return. */
export interface EventRange {
  /** First position at which running transactions may still add events (`finalBelow`). */
  below: number
  /** The listing omits events that the cloud received before this time, ms. */
  sinceMs: number
}

/** Protection events of a store in the order of their positions. */
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
