import { z } from 'zod'
import type { ProtectionEvent } from '../../../policy/protection-events.ts'
import { present } from '../../shop/assistance/present.ts'
import { openRequestForAlarm } from '../../shop/assistance/requests.ts'
import { AssistanceRequest } from '../../shop/assistance/schema.ts'
import { actorOf, knownCaller } from '../../platform/foundation/caller.ts'
import { notFound } from '../../platform/foundation/failure.ts'
import { rolesFrom } from '../../platform/foundation/roles.ts'
import { Id, Success } from '../../platform/operations/fields.ts'
import { operation } from '../../platform/operations/operation.ts'
import { HELP_AT_ALARM, notifyStaff } from '../../shop/push/alarm-notices.ts'
import { ownStoreOf } from '../../platform/stores/own-store.ts'
import { findAlarm } from './alarm-queries.ts'

export const callHelpToAlarm = operation({
  name: 'callHelpToAlarm',
  area: 'assistance',
  minimumPackage: 'GROW',
  roles: rolesFrom('associate'),
  summary: 'Calls colleagues to a gate that alarmed.',
  description:
    'The call appears among the requests for help of the store (`fetchAssistanceRequests`, reason `alarm`), and rings the browsers that get notices about alarms. Each alarm has at most one call that is not closed; a second call returns the first.',
  refusals: ['too_many_requests_open'],
  changes: true,
  request: z.strictObject({ eventId: Id }),
  response: AssistanceRequest.extend(Success),
  example: { eventId: 'evt_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, { eventId }) {
    const { tenant } = knownCaller(call.caller)
    const requestedBy = actorOf(call.caller)
    const { db, nowMs } = call
    const alarm = await findAlarm(db, tenant, eventId)
    if (!alarm) throw notFound('alarm')
    const { store_id: storeId } = await ownStoreOf(call, alarm.store_id, 'alarm')
    const { deviceId = null } = JSON.parse(alarm.body) as ProtectionEvent
    const { row, isNew } = await openRequestForAlarm(
      { db, nowMs, platform: call.services.platform },
      { tenant, storeId, deviceId, eventId, requestedBy },
    )
    if (isNew) {
      const about = { id: row.request_id, reason: HELP_AT_ALARM, storeId, except: requestedBy }
      await notifyStaff({ db, tenant, nowMs }, [{ ...about, page: 'help', lowest: 'associate' }])
      call.afterCommit(call.services.push.wake)
    }
    call.changed(row.request_id)
    const [shown] = await present(db, [row])
    return { success: true as const, ...(shown as AssistanceRequest) }
  },
})
