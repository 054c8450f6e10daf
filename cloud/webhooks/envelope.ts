import { iso } from '../operations/fields.ts'
import type { OutboxEventRow } from '../persistence/tables/accounts.ts'

/** Body of a delivery, the same at every attempt. `event` and `type` are equal, because the specification has both. */
export function envelopeOf(row: Pick<OutboxEventRow, 'event_id' | 'type' | 'at_ms' | 'data'>): string {
  const head = JSON.stringify({ id: row.event_id, event: row.type, type: row.type, timestamp: iso(row.at_ms) })
  return `${head.slice(0, -1)},"data":${row.data}}`
}
