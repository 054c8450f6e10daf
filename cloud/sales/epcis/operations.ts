import { z } from 'zod'
import { Id, iso, Limit, Success, Timestamp } from '../../platform/operations/fields.ts'
import { operation } from '../../platform/operations/operation.ts'
import { invalidCursor } from '../../platform/operations/paging.ts'
import { waitForFinalPosition } from '../../platform/persistence/positions.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { EpcisEvent, CONTEXT } from './event.ts'
import { readCursor, readEvents, SOURCE_TYPES, writeCursor, type SourceEntry, type Position } from './read-events.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'

/** Yields at most `limit` events. If there are more events, the position of the last yielded event follows. */
async function* limited(
  entries: AsyncIterable<SourceEntry>,
  limit: number | undefined,
): AsyncGenerator<EpcisEvent | Position> {
  let count = 0
  let last: Position | undefined
  for await (const entry of entries) {
    if (!entry.event) continue
    if (count === limit && last) {
      yield last
      return
    }
    count++
    last = entry
    yield entry.event
  }
}

function isEvent(part: EpcisEvent | Position): part is EpcisEvent {
  return 'eventID' in part
}

/**
 * Streams an EPCIS document in JSON-LD with the additional fields of `also`. A reader recognizes an incomplete document
 * by the missing final brace.
 */
async function* asDocument(
  entries: AsyncIterable<SourceEntry>,
  limit: number | undefined,
  createdAt: string,
  also: object,
): AsyncGenerator<string> {
  const head = { ...also, '@context': CONTEXT, type: 'EPCISDocument', schemaVersion: '2.0', creationDate: createdAt }
  let before = `${JSON.stringify(head).slice(0, -1)},"epcisBody":{"eventList":[`
  let cursor: string | undefined
  for await (const part of limited(entries, limit)) {
    if (!isEvent(part)) {
      cursor = writeCursor(part)
      continue
    }
    yield before + JSON.stringify(part)
    before = ','
  }
  const next = cursor === undefined ? '' : `,"untag:nextCursor":${JSON.stringify(cursor)}`
  yield `${before === ',' ? '' : before}]}${next}}`
}

/** Streams one EPCIS event per line. If there are more events, the last line contains the cursor. */
async function* asLines(entries: AsyncIterable<SourceEntry>, limit: number | undefined): AsyncGenerator<string> {
  for await (const part of limited(entries, limit)) {
    const line = isEvent(part) ? { '@context': CONTEXT, ...part } : { 'untag:nextCursor': writeCursor(part) }
    yield `${JSON.stringify(line)}\n`
  }
}

export const exportEpcisEvents = operation({
  name: 'exportEpcisEvents',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('manager'),
  summary: 'Exports the history of the goods in a store as EPCIS 2.0 events.',
  description:
    'Includes paid purchases, status changes of items and protection events, in the order in which they were ' +
    'stored. The response is streamed and may be long. The same event has the same `eventID` in each export, so ' +
    'that capturing it twice does no harm. `format` `ndjson` returns one event per line. With a `limit` the ' +
    'response may contain `untag:nextCursor`. With `format` `json-ld` the document follows the EPCIS 2.0 ' +
    'schema and therefore has no `success`. The export contains no data about shoppers or staff.',
  changes: false,
  formats: [
    {
      format: 'json-ld',
      contentType: 'application/ld+json',
      description: 'With `format` `json-ld`: an EPCISDocument that follows the EPCIS 2.0 schema.',
    },
    {
      format: 'ndjson',
      contentType: 'application/x-ndjson',
      description: 'With `format` `ndjson`: one event per line, each with its own `@context`.',
    },
  ],
  request: z.strictObject({
    storeId: Id,
    type: z.enum(SOURCE_TYPES).optional().describe('Source of the events.'),
    deviceId: Id.optional(),
    purchaseId: Id.optional(),
    since: Timestamp.optional().describe('Time at which the cloud received the event.'),
    limit: Limit.optional().describe('Default: all.'),
    cursor: z.string().optional().describe('`untag:nextCursor` of the previous page.'),
    format: z.enum(['json', 'json-ld', 'ndjson']).optional().describe('Default `json`.'),
  }),
  response: z.strictObject({
    ...Success,
    '@context': z.array(z.unknown()),
    type: z.literal('EPCISDocument'),
    schemaVersion: z.literal('2.0'),
    creationDate: z.string(),
    epcisBody: z.strictObject({ eventList: z.array(EpcisEvent) }),
    'untag:nextCursor': z.string().optional(),
  }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', since: '2026-11-20T00:00:00Z' },
  async stream(reading, { storeId, since, cursor, limit, format, ...filter }) {
    const from = cursor === undefined ? undefined : readCursor(cursor)
    if (cursor !== undefined && !from) throw invalidCursor()
    const store = await reading.read((call) => ownStore(call, storeId))
    const below = await reading.read(({ db }) => waitForFinalPosition(db, storeId))
    const range = { below, sinceMs: since === undefined ? 0 : Date.parse(since) }
    const entries = readEvents(reading, store, { storeId, ...filter }, range, from)
    if (format === 'ndjson')
      return {
        contentType: 'application/x-ndjson',
        fileName: `epcis-${storeId}.ndjson`,
        chunks: asLines(entries, limit),
      }
    const createdAt = iso(reading.services.platform.clock.wall())
    if (format === 'json-ld')
      return { contentType: 'application/ld+json', chunks: asDocument(entries, limit, createdAt, {}) }
    return { contentType: 'application/json', chunks: asDocument(entries, limit, createdAt, { success: true }) }
  },
})
