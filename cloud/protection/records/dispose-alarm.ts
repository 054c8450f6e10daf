import { z } from 'zod'
import type { ProtectionEvent } from '../../../policy/protection-events.ts'
import { ALARM_DISPOSITIONS, ITEM_STATUSES } from '../../../policy/vocabulary.ts'
import { knownCaller, staffOf, rolesFrom } from '../../platform/foundation/caller.ts'
import { invalid, notFound, precondition } from '../../platform/foundation/failure.ts'
import { centsOf, Euros, Id, iso, definedFields, Success, text, Timestamp } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { ownStoreOf, ownStore, Total } from '../../platform/stores/own-store.ts'
import { shownNames } from '../../platform/stores/make-store.ts'
import {
  dispositionsOf,
  findAlarm,
  writeDisposition,
  listAlarms,
  raisedBetween,
  RAISED_FIELDS,
  Disposition,
  toDisposition,
} from './alarm-queries.ts'

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
    ...RAISED_FIELDS,
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
  async run(call, { storeId, deviceId, since, raisedFrom, raisedUntil, until, disposition, operatorId }) {
    const store = await ownStore(call, storeId)
    const filter = {
      scopes: [{ storeId: store.store_id }],
      state: 'open',
      disposition: undefined,
      deviceId,
      raised: raisedBetween(raisedFrom, raisedUntil),
      sinceMs: since === undefined ? 0 : Date.parse(since),
      untilMs: Date.parse(until),
      after: undefined,
      limit: AT_ONCE,
    } as const
    const { rows, total } = await listAlarms(call.db, filter)
    for (const { eventId } of rows)
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
    await refreshGateDisplays(call, store.store_id)
    call.changed(storeId)
    return { success: true as const, disposed: rows.length, left: total - rows.length }
  },
})

const Alarm = z.strictObject({
  eventId: z.string(),
  storeId: z.string(),
  deviceId: z.string().optional(),
  reason: z.string(),
  epc: z.string().optional(),
  itemStatus: z.enum(ITEM_STATUSES).optional(),
  occurredAt: z.string(),
  ...Disposition.shape,
})

export const disposeAlarm = operation({
  name: 'disposeAlarm',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('associate'),
  summary: 'Stores what a person found out about a gate alarm.',
  description:
    'Works for the events `gate_alarm` and `gate_bulk_alarm`. `real`: theft. `unintentional`: the shopper forgot to pay. `tag_left_on`: the goods are paid, but the tag is still active. `staff_error`: staff carried goods out. `phantom`: no goods left. The latest disposition counts, whether it comes from this call or from a gate’s display. The call also acknowledges the exception of the alarm, and closes its call for help. `recoveredValue` is the value of recovered goods. It is not allowed for a phantom. Earlier dispositions stay in `fetchAlarms`.',
  refusals: ['alarm_disposed'],
  changes: true,
  request: z.strictObject({
    eventId: Id,
    disposition: z.enum(ALARM_DISPOSITIONS),
    operatorId: text(128)
      .optional()
      .describe('Stored as sent; the cloud does not verify it. A signed-in user may omit it and is then recorded.'),
    recoveredValue: Euros.optional().describe('EUR.'),
    seen: z
      .union([z.literal('none'), Timestamp])
      .optional()
      .describe(
        '`disposedAt` that the person has seen, or `none`. If another one disposed of the alarm meanwhile, the call fails with 409 `alarm_disposed`.',
      ),
  }),
  response: Alarm.extend(Success),
  example: {
    eventId: 'evt_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    disposition: 'real',
    operatorId: 'op_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    recoveredValue: 89.9,
  },
  async run(call, { eventId, disposition, operatorId, recoveredValue, seen }) {
    const { tenant } = knownCaller(call.caller)
    const row = await findAlarm(call.db, tenant, eventId)
    if (!row) throw notFound('alarm')
    const store = await ownStoreOf(call, row.store_id, 'alarm')
    if (disposition === 'phantom' && recoveredValue !== undefined && recoveredValue > 0)
      throw invalid('recoveredValue', 'is not allowed for a phantom: there were no goods')
    if (seen !== undefined) await assertUnchanged(call, tenant, eventId, seen)
    const disposed: Row<'alarm_disposition'> = {
      event_id: eventId,
      tenant,
      store_id: store.store_id,
      disposition,
      operator_id: staffOf(call.caller, operatorId),
      recovered_cent: recoveredValue === undefined ? null : centsOf(recoveredValue),
      disposed_ms: call.nowMs,
      earlier: null,
    }
    await writeDisposition(call.db, disposed)
    await refreshGateDisplays(call, store.store_id)
    call.changed(eventId)
    const event = JSON.parse(row.body) as ProtectionEvent
    return {
      success: true as const,
      eventId,
      storeId: store.store_id,
      reason: event.reason ?? 'gate_alarm',
      ...definedFields({
        deviceId: event.deviceId ?? null,
        epc: event.epc ?? null,
        itemStatus: event.itemStatus ?? null,
      }),
      occurredAt: event.occurredAt,
      ...toDisposition(disposed),
    }
  },
})

/** Throws if the alarm has another disposition than the person has seen, and says whose. */
async function assertUnchanged({ db }: Call, tenant: string, eventId: string, seen: string): Promise<void> {
  const known = (await dispositionsOf(db, tenant, [eventId])).get(eventId)
  if (!known || (seen !== 'none' && Date.parse(seen) === known.disposed_ms)) return
  const { staff } = await shownNames(db, tenant, { devices: [], staff: [known.operator_id] })
  const by = staff.get(known.operator_id) ?? known.operator_id
  throw precondition('alarm_disposed', `${by} recorded ${known.disposition} at ${iso(known.disposed_ms)}`)
}

/** Maximum agents of a store that poll at once. Others poll within 15 s. */
const AGENTS_LIMIT = 20

/**
 * Has the connected agents of the store poll after the commit. So the displays at its gates show at once what people in
 * the console did about an alarm, and not up to 15 s later.
 */
export async function refreshGateDisplays(
  { db, services, afterCommit }: Pick<Call, 'db' | 'services' | 'afterCommit'>,
  storeId: string,
): Promise<void> {
  const agents = await db
    .selectFrom('agent')
    .select('agent_id')
    .where('store_id', '=', storeId)
    .where('revoked_ms', 'is', null)
    .orderBy('agent_id', 'desc')
    .limit(AGENTS_LIMIT)
    .execute()
  afterCommit(() => {
    for (const { agent_id: agentId } of agents)
      if (services.agents.isConnected(agentId)) services.agents.sendCommand({ storeId, agentId }, { command: 'sync' })
  })
}
