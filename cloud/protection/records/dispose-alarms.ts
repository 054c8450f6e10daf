import { z } from 'zod'
import { ALARM_DISPOSITIONS } from '../../../policy/vocabulary.ts'
import { staffOf } from '../../platform/foundation/caller.ts'
import { rolesFrom } from '../../platform/foundation/roles.ts'
import { Id, Success, text, Timestamp } from '../../platform/operations/fields.ts'
import { operation } from '../../platform/operations/operation.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { Total } from '../../platform/stores/store-scope.ts'
import { writeDisposition } from './alarm-queries.ts'
import { listAlarms } from './list-alarms.ts'

/** Maximum number of alarms that one call disposes of. */
const AT_ONCE = 500

export const disposeAlarms = operation({
  name: 'disposeAlarms',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('associate'),
  summary: 'Stores one disposition for many open alarms, for example after the fault of a gate.',
  description: `Works like \`disposeAlarm\` for the open alarms of a store that were raised until \`until\`, the latest first, at most ${AT_ONCE} in a call. \`left\` is the number of those that are still open: call again. Acknowledged alarms stay as they are.`,
  changes: true,
  request: z.strictObject({
    storeId: Id,
    deviceId: Id.optional().describe('Only alarms of this gate.'),
    since: Timestamp.optional(),
    until: Timestamp.describe('When the person looked at the alarms: later ones stay open.'),
    disposition: z.enum(ALARM_DISPOSITIONS),
    operatorId: text(128).optional().describe('As with `disposeAlarm`.'),
  }),
  response: z.strictObject({ ...Success, disposed: z.int(), left: Total }),
  example: {
    storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    deviceId: 'dev_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    until: '2026-11-20T12:00:00.000Z',
    disposition: 'phantom',
  },
  async run(call, { storeId, deviceId, since, until, disposition, operatorId }) {
    const store = await ownStore(call, storeId)
    const filter = {
      storeId: store.store_id,
      state: 'open',
      disposition: undefined,
      deviceId,
      sinceMs: since === undefined ? 0 : Date.parse(since),
      untilMs: Date.parse(until),
      after: undefined,
      limit: AT_ONCE,
    } as const
    const { rows, total } = await listAlarms(call.db, filter)
    const chosen = rows.slice(0, AT_ONCE)
    for (const { eventId } of chosen)
      await writeDisposition(call.db, {
        event_id: eventId,
        tenant: store.tenant,
        store_id: store.store_id,
        disposition,
        operator_id: staffOf(call.caller, operatorId),
        recovered_cent: null,
        disposed_ms: call.nowMs,
        earlier: null,
      })
    call.changed(storeId)
    return { success: true as const, disposed: chosen.length, left: total - chosen.length }
  },
})
