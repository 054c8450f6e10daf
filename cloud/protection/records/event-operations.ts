import { z } from 'zod'
import { ProtectionEvent, PROTECTION_EVENT_TYPES } from '../../../policy/events.ts'
import { normaliseIdentifiers } from '../../../policy/identifiers.ts'
import { ingestBatch } from '../../agents/journal/ingest.ts'
import { raiseForEvent } from '../../assistance/raise-for-event.ts'
import { eventsAfter, type After } from '../../epcis/queries.ts'
import { knownCaller } from '../../foundation/caller.ts'
import { Failure, invalid } from '../../foundation/failure.ts'
import { Id, iso, Limit, Success, Timestamp } from '../../operations/fields.ts'
import { operation, type Call } from '../../operations/operation.ts'
import { wrongCursor } from '../../operations/paging.ts'
import { positionSince } from '../../persistence/positions.ts'
import { ownStore } from '../../stores/own-store.ts'
import { dispositionsOf } from './alarm-queries.ts'
import { Disposition, toDisposition } from './dispose-alarm.ts'
import { storeEvent } from './events.ts'
import { noteReported } from './exceptions.ts'
import { settledBelow } from './settled.ts'

const EVENTS_LIMIT = 500
const DEFAULT_PAGE = 100
const BULK_BODY_LIMIT = 2 * 1024 * 1024

/** An event as it is listed. */
const KeptEvent = ProtectionEvent.extend({ eventId: z.string(), alarm: Disposition.optional() })

export const reportProtectionEvents = operation({
  name: 'reportProtectionEvents',
  area: 'protection',
  minimumPackage: 'GROW',
  summary: 'Takes in protection events: from a merchant’s own devices, or a signed batch of an agent’s journal.',
  description:
    'An event is known by its `eventId`, which is one of the account: reported again it changes nothing. A batch is answered with a signed `ack` of all that is durably applied.',
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
    // What an agent reports is signed and a row of its journal, and is checked there.
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
        // Not the same event again: taken for that, an alarm of this store would be lost without a word.
        if (known.store_id !== event.storeId)
          throw new Failure('already-exists', 'this eventId stands for an event of another store')
        duplicates++
        continue
      }
      const whole = { ...event, ...normal.identifiers, processedAt: iso(call.nowMs) }
      const scope = { db: call.db, tenant, platform: call.services.platform, nowMs: call.nowMs }
      await storeEvent(scope, whole)
      await noteReported(scope, whole)
      await raiseForEvent(scope, whole, Date.parse(whole.occurredAt))
      accepted++
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      errors.push({ index, code: error.code, message: error.message })
    }
  }
  return { accepted, duplicates, errors }
}

export const fetchProtectionEvents = operation({
  name: 'fetchProtectionEvents',
  area: 'protection',
  minimumPackage: 'GROW',
  summary: 'Lists the protection events of a store in the order in which they became durable.',
  description:
    'To follow what happens, send the last `nextCursor` again: nothing is added before it. A page without `nextCursor` is not full yet; ask for it again, and know its events by `eventId`. An alarm that staff have looked at (disposeAlarm) says in `alarm` what it was, who said so and when.',
  changes: false,
  request: z.strictObject({
    storeId: Id,
    type: z.enum(PROTECTION_EVENT_TYPES).optional(),
    deviceId: Id.optional(),
    purchaseId: Id.optional(),
    since: Timestamp.optional().describe('By the time at which the cloud took the event in.'),
    limit: Limit.optional(),
    cursor: z.string().optional().describe('The `nextCursor` of the page before.'),
  }),
  response: z.strictObject({ ...Success, events: z.array(KeptEvent), nextCursor: z.string().optional() }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', type: 'protection.action.completed' },
  async run(call, { since, cursor, limit = DEFAULT_PAGE, ...filter }) {
    const { db } = call
    const from = cursor === undefined ? START : readCursor(cursor)
    const { tenant } = await ownStore(call, filter.storeId)
    const range = {
      below: await settledBelow(call, filter.storeId),
      sinceMs: since === undefined ? 0 : Date.parse(since),
    }
    const position = await positionSince(db, 'protection', filter.storeId, range.sinceMs)
    const after = from.position >= position ? from : { position, id: '' }
    const rows = await eventsAfter(db, filter, range, after, limit + 1)
    const items = rows.slice(0, limit)
    const last = items.at(-1)
    const said = await dispositionsOf(
      db,
      tenant,
      items.map((row) => row.event_id),
    )
    const events = items.map((row) => {
      const alarm = said.get(row.event_id)
      return { ...(JSON.parse(row.body) as ProtectionEvent), ...(alarm && { alarm: toDisposition(alarm) }) }
    })
    return { success: true as const, events, ...(rows.length > limit && last && { nextCursor: writeCursor(last) }) }
  },
})

/** Before the first event. */
const START: After = { position: 0, id: '' }

function writeCursor({ position, event_id }: { position: number; event_id: string }): string {
  return Buffer.from(`${position}/${event_id}`).toString('base64url')
}

/** What `writeCursor` has written, whatever the event is called. */
function readCursor(cursor: string): After {
  const match = /^(\d{1,16})\/([^\0]{1,128})$/u.exec(Buffer.from(cursor, 'base64url').toString())
  if (match?.[1] === undefined || match[2] === undefined) throw wrongCursor()
  return { position: Number(match[1]), id: match[2] }
}
