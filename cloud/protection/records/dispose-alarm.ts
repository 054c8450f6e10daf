import { z } from 'zod'
import type { ProtectionEvent } from '../../../policy/protection-events.ts'
import { ITEM_STATUSES } from '../../../policy/vocabulary.ts'
import { knownCaller } from '../../foundation/caller.ts'
import { invalid, notFound } from '../../foundation/failure.ts'
import { centsOf, Euros, eurosOf, Id, iso, definedFields, Success, text } from '../../operations/fields.ts'
import { operation } from '../../operations/operation.ts'
import type { AlarmDispositionRow } from '../../persistence/tables/protection.ts'
import { ownStoreOf } from '../../stores/own-store.ts'
import { findAlarm, writeDisposition } from './alarm-queries.ts'

/** `real`: theft. `unintentional`: the shopper forgot to pay. `phantom`: false alarm. */
const DISPOSITIONS = ['real', 'unintentional', 'phantom'] as const

/** Disposition of an alarm, with operator and time. */
export const Disposition = z.strictObject({
  disposition: z.enum(DISPOSITIONS),
  operatorId: z.string(),
  recoveredValue: z.number().optional(),
  disposedAt: z.string(),
})

/** A stored disposition in API form. */
export function toDisposition(row: AlarmDispositionRow): z.infer<typeof Disposition> {
  return {
    disposition: row.disposition as (typeof DISPOSITIONS)[number],
    operatorId: row.operator_id,
    ...(row.recovered_cent !== null && { recoveredValue: eurosOf(row.recovered_cent) }),
    disposedAt: iso(row.disposed_ms),
  }
}

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
  summary: 'Stores the disposition of a gate alarm: real, unintentional or phantom.',
  description:
    'Works for the events `gate_alarm` and `gate_bulk_alarm`. A later call replaces the disposition. `recoveredValue` is the value of recovered goods. It is not allowed for a phantom.',
  changes: true,
  request: z.strictObject({
    eventId: Id,
    disposition: z.enum(DISPOSITIONS),
    operatorId: text(128).describe('Stored as sent; the cloud does not verify it.'),
    recoveredValue: Euros.optional().describe('EUR.'),
  }),
  response: Alarm.extend(Success),
  example: {
    eventId: 'evt_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    disposition: 'real',
    operatorId: 'op_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    recoveredValue: 89.9,
  },
  async run(call, { eventId, disposition, operatorId, recoveredValue }) {
    const { tenant } = knownCaller(call.caller)
    const row = await findAlarm(call.db, tenant, eventId)
    if (!row) throw notFound('alarm')
    const store = await ownStoreOf(call, row.store_id, 'alarm')
    if (disposition === 'phantom' && recoveredValue !== undefined && recoveredValue > 0)
      throw invalid('recoveredValue', 'is not allowed for a phantom: there were no goods')
    const disposed: AlarmDispositionRow = {
      event_id: eventId,
      tenant,
      store_id: store.store_id,
      disposition,
      operator_id: operatorId,
      recovered_cent: recoveredValue === undefined ? null : centsOf(recoveredValue),
      disposed_ms: call.nowMs,
    }
    await writeDisposition(call.db, disposed)
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
