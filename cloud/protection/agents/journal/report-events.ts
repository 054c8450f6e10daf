import { z } from 'zod'
import { ProtectionEvent } from '../../../../policy/protection-events.ts'
import { normaliseIdentifiers } from '../../../../policy/item-identifiers.ts'
import { raiseForEvent } from '../../../shop/assistance/raise-for-event.ts'
import { knownCaller } from '../../../platform/foundation/caller.ts'
import { Failure, invalid } from '../../../platform/foundation/failure.ts'
import { iso, Success } from '../../../platform/operations/fields.ts'
import { operation, type Call } from '../../../platform/operations/operation.ts'
import { storeEvent } from '../../records/record-event.ts'
import { recordReportedException } from '../../records/exceptions.ts'
import { ownStore } from '../../../platform/stores/own-store.ts'
import { ingestBatch } from './ingest.ts'

const EVENTS_LIMIT = 500
const BULK_BODY_LIMIT = 2 * 1024 * 1024

export const reportProtectionEvents = operation({
  name: 'reportProtectionEvents',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: [],
  summary: 'Stores protection events of a merchant’s own devices, or a signed batch of an agent’s journal.',
  description:
    '`eventId` identifies an event within the account; a repeated event changes nothing. The response to a batch contains a signed `ack` for all rows that are durable.',
  callers: ['secret', 'agent'],
  refusals: ['ledger_generation', 'ledger_fork'],
  changes: true,
  bodyLimit: BULK_BODY_LIMIT,
  request: z.strictObject({
    events: z
      .array(ProtectionEvent.omit({ processedAt: true }))
      .max(EVENTS_LIMIT)
      .optional(),
    batch: z.string().max(262_144).optional().describe('pevt+jwt'),
  }),
  response: z.strictObject({
    ...Success,
    accepted: z.int(),
    duplicates: z.int(),
    errors: z.array(z.strictObject({ index: z.int(), code: z.string(), message: z.string() })),
    ack: z.string().optional(),
  }),
  example: {
    events: [
      {
        type: 'protection.action.completed',
        eventId: 'evt-4711',
        occurredAt: '2026-11-20T09:00:00Z',
        storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
        protectionAction: 'detach_hard_tag',
      },
    ],
  },
  emits: ['securityTag.deactivated'],
  async run(call, { events, batch }) {
    if ((events === undefined) === (batch === undefined))
      throw invalid('events', 'send either events[] or a batch', 'missing')
    if (batch !== undefined) {
      if (call.caller.kind !== 'agent')
        throw new Failure('permission-denied', 'batches come from agents only', { reason: 'agents_only' })
      return { success: true as const, ...(await ingestBatch(call, call.caller, batch)), errors: [] }
    }
    // Agents must sign their reports, so they may send only signed batches.
    if (call.caller.kind === 'agent')
      throw new Failure('permission-denied', 'agents report in signed batches', { reason: 'batches_only' })
    return { success: true as const, ...(await reportEvents(call, events ?? [])) }
  },
})

type ReportedEvent = Omit<ProtectionEvent, 'processedAt'>

async function reportEvents(call: Call, events: readonly ReportedEvent[]) {
  const { tenant } = knownCaller(call.caller)
  const errors: { index: number; code: string; message: string }[] = []
  let accepted = 0
  let duplicates = 0
  for (const [index, event] of events.entries()) {
    try {
      await ownStore(call, event.storeId)
      const normal = normaliseIdentifiers({ epc: event.epc, tagUid: event.tagUid, tagId: event.tagId })
      if (!normal.ok) throw invalid(normal.field, normal.message)
      const named = call.db.selectFrom('protection_event').select('store_id').where('event_id', '=', event.eventId)
      const known = await named.where('tenant', '=', tenant).executeTakeFirst()
      if (known) {
        // Rejects the event if another store has used its id. Without this check, the cloud would drop the event as a
        // repetition, even if the event is an alarm.
        if (known.store_id !== event.storeId)
          throw new Failure('already-exists', 'an event of another store has this eventId: use another one')
        duplicates++
        continue
      }
      const completed = { ...event, ...normal.identifiers, processedAt: iso(call.nowMs) }
      const scope = { db: call.db, tenant, platform: call.services.platform, nowMs: call.nowMs }
      await storeEvent(scope, completed)
      await recordReportedException(scope, completed)
      await raiseForEvent(scope, completed, Date.parse(completed.occurredAt))
      accepted++
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      errors.push({ index, code: error.code, message: error.message })
    }
  }
  return { accepted, duplicates, errors }
}
