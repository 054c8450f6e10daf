import { PROTECTION_EVENT_TYPES, type ProtectionEvent } from '../../../policy/protection-events.ts'
import { sql } from 'kysely'
import type { ReadContext } from '../../platform/operations/operation.ts'
import { yieldToEventLoop } from '../../platform/operations/job-steps.ts'
import { groupBy, type Db } from '../../platform/persistence/database.ts'
import { positionSince } from '../../platform/persistence/positions.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import type { EpcisEvent } from './event.ts'
import { moveEvent, protectionEvent, soldEvent, type Sold } from './events-of.ts'
import {
  eventsAfter,
  type EventPosition,
  type EventFilter,
  type EventRange,
} from '../../protection/records/event-operations.ts'
import { firstWithin, withinLines } from '../../platform/operations/paging.ts'

/** A status change, with the payment time of its purchase. */
type MoveOfPurchase = Row<'item_move'> & { completed_ms: number | null }

/** Separates item id and revision in the id of a status change. */
const DOT = '.'

/** Id of a status change within one position. */
function moveId({ item_id, rev }: Row<'item_move'>): string {
  return `${item_id}${DOT}${rev}`
}

/** True if the text has the form of `moveId`. */
function isMoveId(id: string): boolean {
  return /.\.\d{1,15}$/.test(id)
}

/** Status changes of a store's items after a position. `id` is the id of a move, or empty. */
export function movesAfter(
  db: Db,
  { storeId, purchaseId }: EventFilter,
  { below, sinceMs }: EventRange,
  { position, id }: EventPosition,
  limit: number,
): Promise<MoveOfPurchase[]> {
  const dot = id.lastIndexOf(DOT)
  const itemId = dot < 0 ? id : id.slice(0, dot)
  const rev = dot < 0 ? 0 : Number(id.slice(dot + 1))
  let query = db
    .selectFrom('item_move')
    .leftJoin('purchase', 'purchase.purchase_id', 'item_move.purchase_id')
    .selectAll('item_move')
    .select('purchase.completed_ms as completed_ms')
    .where('at_ms', '>=', sinceMs)
  // Those of a purchase are few, but SQLite would take the index of positions, and read all moves of the store.
  if (purchaseId === undefined) query = query.where('item_move.store_id', '=', storeId)
  else
    query = query
      .where('item_move.purchase_id', '=', purchaseId)
      .where(sql<string>`item_move.store_id || ''`, '=', storeId)
  return query
    .where(({ eb, refTuple, tuple }) =>
      eb(refTuple('position', 'item_id', 'item_move.rev'), '>', tuple(position, itemId, rev)),
    )
    .where('position', '<', below)
    .orderBy('position')
    .orderBy('item_id')
    .orderBy('item_move.rev')
    .limit(limit)
    .execute()
}

/** Purchases of a page: it counts the lines and units of all of them. */
const SALES_AT_ONCE = 50
/** Units of the purchases of a page, beyond those of its first one. Each may be a tag, which the event names. */
const UNITS_AT_ONCE = 2_000

/** The first of these purchases that have at most `UNITS_AT_ONCE` units together; at least one. */
async function withinUnits<P extends { purchase_id: string }>(db: Db, purchases: readonly P[]): Promise<P[]> {
  if (purchases.length === 0) return []
  const counted = await db
    .selectFrom('purchase_line')
    .select(['purchase_id', (eb) => eb.fn.sum<number>('quantity').as('units')])
    .where(
      'purchase_id',
      'in',
      purchases.map(({ purchase_id: id }) => id),
    )
    .groupBy('purchase_id')
    .execute()
  const units = new Map(counted.map((row) => [row.purchase_id, Number(row.units)]))
  return firstWithin(purchases, ({ purchase_id: id }) => units.get(id) ?? 0, UNITS_AT_ONCE)
}

/** A paid purchase with its position. */
type PositionedSale = Sold & { completed_position: number }

/** Paid purchases of a store after a position, including purchases that were cancelled later. */
async function salesAfter(
  db: Db,
  { storeId, purchaseId }: EventFilter,
  { below, sinceMs }: EventRange,
  { position, id }: EventPosition,
  limit: number,
): Promise<PositionedSale[]> {
  let query = db
    .selectFrom('purchase')
    .select(['purchase_id', 'completed_ms', 'completed_position'])
    .where('store_id', '=', storeId)
    .where('completed_ms', '>=', sinceMs)
  if (purchaseId !== undefined) query = query.where('purchase_id', '=', purchaseId)
  const found = await query
    .where(({ eb, refTuple, tuple }) => eb(refTuple('completed_position', 'purchase_id'), '>', tuple(position, id)))
    .where('completed_position', '<', below)
    .orderBy('completed_position')
    .orderBy('purchase_id')
    .limit(limit)
    .execute()
  const purchases = await withinUnits(db, await withinLines(db, 'purchase_line', found))
  const ids = purchases.map((purchase) => purchase.purchase_id)
  if (ids.length === 0) return []
  const lines = await db
    .selectFrom('purchase_line')
    .select(['purchase_id', 'line_id', 'ean', 'quantity', 'deposit_of', 'weight_grams', 'lot'])
    .where('purchase_id', 'in', ids)
    .orderBy('line_no')
    .execute()
  const moves = await db
    .selectFrom('item_move')
    .selectAll()
    .where('purchase_id', 'in', ids)
    .where('to_status', '=', 'paid')
    .orderBy('item_id')
    .execute()
  const linesOf = groupBy(lines, (line) => line.purchase_id)
  const movesOf = groupBy(moves, (move) => move.purchase_id)
  return purchases.map(({ purchase_id, completed_ms, completed_position }) => ({
    purchase_id,
    completed_ms: completed_ms ?? 0,
    completed_position: completed_position ?? 0,
    lines: linesOf.get(purchase_id) ?? [],
    moves: movesOf.get(purchase_id)?.filter((move) => move.at_ms === completed_ms) ?? [],
  }))
}

/** EANs by line id. */
async function eansOfLines(db: Db, lineIds: readonly string[]): Promise<Map<string, Row<'purchase_line'>['ean']>> {
  if (lineIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('purchase_line')
    .select(['line_id', 'ean'])
    .where('line_id', 'in', [...new Set(lineIds)])
    .execute()
  return new Map(rows.map((row) => [row.line_id, row.ean]))
}

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

type Store = Pick<Row<'store'>, 'store_id' | 'gln'>
type Page = (
  db: Db,
  store: Store,
  filter: EventFilter,
  range: EventRange,
  after: EventPosition,
) => Promise<SourceEntry[]>

const PAGES: Readonly<Record<Kind, Page>> = {
  async checkout(db, store, filter, range, after) {
    const sales = await salesAfter(db, filter, range, after, SALES_AT_ONCE)
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
