import { CONTEXT, type EpcisEvent } from './event.ts'
import { writeCursor, type SourceEntry, type Position } from './read-events.ts'

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
export async function* asDocument(
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
export async function* asLines(entries: AsyncIterable<SourceEntry>, limit: number | undefined): AsyncGenerator<string> {
  for await (const part of limited(entries, limit)) {
    const line = isEvent(part) ? { '@context': CONTEXT, ...part } : { 'untag:nextCursor': writeCursor(part) }
    yield `${JSON.stringify(line)}\n`
  }
}
