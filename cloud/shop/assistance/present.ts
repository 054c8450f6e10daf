import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { shownNames } from '../../platform/stores/make-store.ts'
import { goodsOfRequests } from './goods.ts'
import { messagesOf, type AssistanceRequest } from './queries.ts'
import { toRequest } from './requests.ts'

/**
 * Requests of one tenant in API form, with the names of zones, devices, users and goods, and with their messages, or the
 * `lastMessages` of each.
 */
export async function present(
  db: Db,
  rows: readonly Row<'assistance_request'>[],
  lastMessages?: number,
): Promise<AssistanceRequest[]> {
  const tenant = rows[0]?.tenant
  if (tenant === undefined) return []
  const messages = await messagesOf(
    db,
    rows.map((row) => row.request_id),
    lastMessages,
  )
  const zoneIds = [...new Set(rows.flatMap((row) => row.zone_id ?? []))]
  const zones =
    zoneIds.length === 0
      ? []
      : await db.selectFrom('zone').select(['zone_id', 'name']).where('zone_id', 'in', zoneIds).execute()
  const zoneNames = new Map(zones.map((zone) => [zone.zone_id, zone.name]))
  const { devices, staff } = await shownNames(db, tenant, {
    devices: rows.map((row) => row.device_id),
    staff: rows.map((row) => row.requested_by),
  })
  const goods = await goodsOfRequests(db, tenant, rows)
  return rows.map((row) => {
    const names = {
      zone: zoneNames.get(row.zone_id ?? ''),
      device: devices.get(row.device_id ?? ''),
      requestedBy: staff.get(row.requested_by ?? ''),
    }
    return toRequest(row, { ...names, goods: goods.get(row.request_id) }, messages.get(row.request_id) ?? [])
  })
}
