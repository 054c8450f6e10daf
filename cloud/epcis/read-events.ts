import { PROTECTION_EVENT_TYPES, type ProtectionEvent } from '../../policy/protection-events.ts'
import type { ReadContext } from '../operations/operation.ts'
import { yieldToEventLoop } from '../operations/yield-to-event-loop.ts'
import type { Db } from '../persistence/database.ts'
import { positionSince } from '../persistence/positions.ts'
import type { StoreRow } from '../persistence/tables/stores.ts'
import type { EpcisEvent } from './event.ts'
import { moveEvent, protectionEvent, soldEvent } from './events-of.ts'
import {
  eventsAfter,
  type EventPosition,
  type EventFilter,
  type EventRange,
} from '../protection/records/event-queries.ts'
import { eansOfLines, isMoveId, moveId, movesAfter, salesAfter } from './queries.ts'

/**
 * Reads purchases, item moves and protection events page by page. Merges them by position, then kind, then id, so that
 * the used memory does not grow with the response.
 */

/** Maximum number of rows of one source in memory. */
const PAGE = 200

/** Sources, in the order in which entries with the same position are listed. */
const KINDS = ['checkout', 'item', 'protection'] as const
type Kind = (typeof KINDS)[number]

/** Values of the `type` filter. */
export const SOURCE_TYPES = ['checkout.completed', 'item.status_changed', ...PROTECTION_EVENT_TYPES] as const

/** Position of an entry in the merged list. */
export interface Position extends EventPosition {
  kind: Kind
}

export interface SourceEntry extends Position {
  /** undefined if the entry has no EPCIS event. */
  event: EpcisEvent | undefined
}

type Store = Pick<StoreRow, 'store_id' | 'gln'>
type Page = (
  db: Db,
  store: Store,
  filter: EventFilter,
  range: EventRange,
  after: EventPosition,
) => Promise<SourceEntry[]>

const PAGES: Readonly<Record<Kind, Page>> = {
  async checkout(db, store, filter, range, after) {
    const sales = await salesAfter(db, filter, range, after, PAGE)
    return sales.map((sold) => ({
      kind: 'checkout',
      position: sold.completed_position,
      id: sold.purchase_id,
      event: soldEvent(store, sold),
    }))
  },
  async item(db, store, filter, range, after) {
    const moves = await movesAfter(db, filter, range, after, PAGE)
    return moves.map((move) => ({
      kind: 'item',
      position: move.position,
      id: moveId(move),
      event: moveEvent(store, move, move.completed_ms),
    }))
  },
  async protection(db, store, filter, range, after) {
    const rows = await eventsAfter(db, filter, range, after, PAGE)
    const events = rows.map((row) => ({ row, event: JSON.parse(row.body) as ProtectionEvent }))
    const eans = await eansOfLines(
      db,
      events.flatMap(({ event }) => event.itemLineId ?? []),
    )
    return events.map(({ row, event }) => ({
      kind: 'protection',
      position: row.position,
      id: row.event_id,
      event: protectionEvent(store, event, eans.get(event.itemLineId ?? '') ?? null),
    }))
  },
}

/** Sources that match the filter. */
function kindsOf({ type, deviceId }: EventFilter): Kind[] {
  if (type === 'checkout.completed') return deviceId === undefined ? ['checkout'] : []
  if (type === 'item.status_changed') return deviceId === undefined ? ['item'] : []
  return type === undefined && deviceId === undefined ? [...KINDS] : ['protection']
}

/**
 * Entries of a store that come after `from` in this range, in order. Includes entries without an EPCIS event, so that
 * readers can record their position.
 */
export async function* readEvents(
  reading: ReadContext,
  store: Store,
  filter: EventFilter,
  range: EventRange,
  from: Position | undefined,
): AsyncGenerator<SourceEntry> {
  const heads: { entries: AsyncGenerator<SourceEntry>; head: SourceEntry }[] = []
  for (const kind of kindsOf(filter)) {
    const entries = listing(reading, kind, store, filter, range, from)
    const first = await entries.next()
    if (!first.done) heads.push({ entries, head: first.value })
  }
  while (heads.length > 0) {
    const next = heads.reduce((a, b) => (compare(b.head, a.head) < 0 ? b : a))
    yield next.head
    const following = await next.entries.next()
    if (following.done) heads.splice(heads.indexOf(next), 1)
    else next.head = following.value
  }
}

async function* listing(
  reading: ReadContext,
  kind: Kind,
  store: Store,
  filter: EventFilter,
  range: EventRange,
  position: Position | undefined,
): AsyncGenerator<SourceEntry> {
  const since = await reading.read(({ db }) => positionSince(db, kind, filter.storeId, range.sinceMs))
  const start = position && startOf(kind, position)
  for (let after = start && start.position >= since ? start : { position: since, id: '' }; ;) {
    const from = after
    const entries = await reading.read(({ db }) => PAGES[kind](db, store, filter, range, from))
    yield* entries
    const last = entries.at(-1)
    if (!last) return
    after = last
    await yieldToEventLoop()
  }
}

/**
 * Position at which reading of one source starts. Entries with the same position are sorted by kind. At the position of
 * `from`, earlier kinds are already read and later kinds are not.
 */
function startOf(kind: Kind, from: Position): EventPosition {
  if (kind === from.kind) return from
  const isRead = KINDS.indexOf(kind) < KINDS.indexOf(from.kind)
  return { position: from.position + (isRead ? 1 : 0), id: '' }
}

function compare(a: Position, b: Position): number {
  return a.position - b.position || KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind)
}

/** Encodes a position as cursor. */
export function writeCursor({ position, kind, id }: Position): string {
  return Buffer.from(`${position}/${kind}/${id}`).toString('base64url')
}

/** Decodes a cursor; undefined if it is invalid. */
export function readCursor(cursor: string): Position | undefined {
  const [, position, kind, id] =
    /^(\d{1,16})\/([a-z]+)\/([^\0]{1,160})$/u.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  const known = KINDS.find((each) => each === kind)
  if (!known || position === undefined || id === undefined || (known === 'item' && !isMoveId(id))) return undefined
  return { position: Number(position), kind: known, id }
}
