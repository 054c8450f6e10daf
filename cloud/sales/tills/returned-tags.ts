import { isSold, mayItemMove, nextItemStatuses } from '../../../policy/item-status.ts'
import {
  namesTags,
  returnContent,
  returnKeyOf,
  tagsOf,
  WAITING_RETURNS_LIMIT,
  type KeptReturn,
} from '../../../policy/till-sale.ts'
import type { ItemStatus } from '../../../policy/vocabulary.ts'
import { invalid, precondition } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import { groupBy } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { ITEM_UNKNOWN, itemsWith, readItems } from '../../protection/items/item-queries.ts'
import { notifyGates } from '../../protection/items/item-sequence.ts'
import { moveBack, PURCHASES_LIMIT } from '../../protection/items/move-by-staff.ts'
import { findPurchase, readLines } from '../../shop/purchases/queries.ts'
import { CLOCKS_DIFFER_MS, MAY_BE_SOLD } from './piece-history.ts'
import { findSale, isWaitingReturn, keyOfPurchase, pieceReports, piecesOfReport, saveReturns } from './queries.ts'
import { EXCHANGE_KEY, reportReturn, reportSale } from './piece-reports.ts'
import { settlePieces } from './settle-pieces.ts'
import { WAIT_FOR_SALE_MS } from './void-sale.ts'

/** Goods that came back, named only by their tags, or with another sale. */

export interface ReturnResult {
  returnId: string
  purchaseId?: string
  /** Amount that was paid for the goods, cents. */
  amountCent?: number
  items: { tag: string; itemStatus: ItemStatus }[]
  /** True if the sale is not here yet: the return applies when it arrives. */
  waiting?: true
}

/** Where a return was recorded, and its key. */
export interface ReturnMade {
  readonly storedMs: number
  readonly agentId?: string
  readonly returnKey: string
  /** True if it waited for its sale. */
  readonly isLate?: true
}

/** Throws 409 if as many returns wait for a sale as may. */
export function assertMayWait({ length }: readonly unknown[]): void {
  if (length >= WAITING_RETURNS_LIMIT)
    throw precondition(
      'too_many_waiting_returns',
      `${WAITING_RETURNS_LIMIT} returns wait for this sale: send the sale first`,
    )
}

/** Throws 409 if untag took the money of a purchase. */
export function assertOfTill({ till }: Row<'purchase'>): void {
  if (till === null)
    throw precondition('not_sold_at_a_till', 'untag took the money of this purchase: return it with refundPayment')
}

/** A tag of an item. */
export const tagOf = ({ epc, tag_uid, tag_id }: Row<'protected_item'>) => epc ?? tag_uid ?? tag_id ?? ''

/**
 * Returns goods that are named only by their tags. The reports about each piece tell of which sale; if that is not here
 * yet, the return waits for it. `row`: the return, to be stored.
 */
export async function returnTags(
  call: Call,
  store: Row<'store'>,
  request: KeptReturn,
  made: ReturnMade,
  row: Row<'till_return'>,
): Promise<ReturnResult> {
  const itemOf = await itemsWith(call.db, store.tenant, [request])
  const found = tagsOf(request).map(({ kind, id, isValid }) => {
    const item = isValid ? itemOf({ [kind]: id }) : undefined
    if (item?.store_id !== store.store_id) throw invalid(`${kind}s`, `${id} ${ITEM_UNKNOWN}`, 'item_unknown')
    return item
  })
  const items = eachOnce(found)
  await assertMayComeBack(call, items, made)
  // Goods that count as unsold, or returned, were perhaps sold at an agent whose report is on its way.
  const returned = items.filter((item) => item.item_status === 'returned')
  const waits = items.filter((item) => item.item_status !== 'returned')
  await assertFewWaiting(
    call,
    waits.filter((item) => !isSold(item.item_status)),
  )
  await saveReturns(call.db, [row])
  const known = [...waits, ...(await itemsThatMayWait(call, returned))]
  await reportForgotten(call, store, waits)
  const back = { ...made, key: made.returnKey, isResellable: request.resellable }
  await reportReturn(call, store, back, known)
  const settled = await settlePieces(
    call,
    store,
    known.map((item) => item.item_id),
  )
  const booked = settled.filter(({ returnKey }) => returnKey === made.returnKey)
  const still = await readItems(
    call.db,
    returned.map((item) => item.item_id),
  )
  await comeBack(
    call,
    [...still.values()].filter((item) => item.item_status === 'returned'),
    request,
    made.storedMs,
  )
  notifyGates(call, store.store_id)
  const now = await readItems(
    call.db,
    items.map((item) => item.item_id),
  )
  const purchaseIds = new Set(booked.map((each) => each.purchaseId))
  const ofReturned = new Set(returned.map((item) => item.item_id))
  const isWaiting = (await piecesOfReport(call.db, made.returnKey)).some(
    (report) => report.is_booked === 0 && !ofReturned.has(report.item_id),
  )
  return {
    returnId: request.returnId,
    ...(purchaseIds.size === 1 && { purchaseId: [...purchaseIds].join('') }),
    ...(booked.length > 0 && { amountCent: booked.reduce((sum, { amountCent }) => sum + amountCent, 0) }),
    items: [...now.values()].map((item) => ({ tag: tagOf(item), itemStatus: item.item_status as ItemStatus })),
    ...(isWaiting && { waiting: true as const }),
  }
}

/** True if a return is older than a purchase in untag, so it is about another sale. */
function isOlder(storedMs: number, purchase: Row<'purchase'>): boolean {
  return purchase.till === null && (purchase.completed_ms ?? 0) > storedMs + CLOCKS_DIFFER_MS
}

/** A refused return changes nothing, so all of its goods are checked first. */
async function assertMayComeBack(
  call: Call,
  items: readonly Row<'protected_item'>[],
  { storedMs, agentId }: ReturnMade,
): Promise<void> {
  const sold = items.filter((item) => isSold(item.item_status))
  const purchases = new Set(sold.flatMap((item) => item.purchase_id ?? []))
  const most = agentId === undefined ? 1 : PURCHASES_LIMIT
  if (purchases.size > most || new Set(items.map((item) => item.purchase_id)).size > PURCHASES_LIMIT)
    throw invalid('epcs', 'were sold in several purchases: send one return for each', 'several_sales')
  for (const purchaseId of purchases) {
    const purchase = await findPurchase(call.db, sold[0]?.tenant ?? '', purchaseId)
    if (purchase && !isOlder(storedMs, purchase)) assertOfTill(purchase)
  }
  // The next sale of goods that count as unsold may be on its way. Only staff end a hold.
  const mayWait = (status: string) => MAY_BE_SOLD.has(status) && (status !== 'cancelled' || agentId !== undefined)
  for (const { item_status: from } of items)
    if (from === 'exception_hold' || !(mayWait(from) || mayItemMove(from as ItemStatus, 'returned')))
      throw precondition('illegal_move', `an item that is ${from} cannot come back at a till: use updateItemStatus`, {
        allowedNext: nextItemStatuses(from as ItemStatus),
      })
}

/** Those of these pieces for which few returns wait. */
async function itemsThatMayWait(
  { db, nowMs }: Call,
  items: readonly Row<'protected_item'>[],
): Promise<Row<'protected_item'>[]> {
  const reports = await pieceReports(
    db,
    items.map((item) => item.item_id),
  )
  const waits = (report: Row<'piece_report'>) => isWaitingReturn(report) && report.at_ms > nowMs - WAIT_FOR_SALE_MS
  return items.filter((item) => (reports.get(item.item_id)?.filter(waits).length ?? 0) < WAITING_RETURNS_LIMIT)
}

/** Throws if too many returns wait for a sale of one of these pieces. */
async function assertFewWaiting({ db, nowMs }: Call, items: readonly Row<'protected_item'>[]): Promise<void> {
  const reports = await pieceReports(
    db,
    items.map((item) => item.item_id),
  )
  for (const ofItem of reports.values())
    assertMayWait(ofItem.filter((report) => isWaitingReturn(report) && report.at_ms > nowMs - WAIT_FOR_SALE_MS))
}

/** Reports sales again that were forgotten, because they are old, if their pieces come back now. */
async function reportForgotten(
  call: Call,
  store: Row<'store'>,
  items: readonly Row<'protected_item'>[],
): Promise<void> {
  const sold = items.filter((item) => isSold(item.item_status) && item.purchase_id !== null)
  const reports = await pieceReports(
    call.db,
    sold.map((item) => item.item_id),
  )
  const forgotten = sold.filter(
    (item) => !reports.get(item.item_id)?.some((report) => report.purchase_id === item.purchase_id),
  )
  for (const [purchaseId, ofSale] of groupBy(forgotten, (item) => item.purchase_id ?? '')) {
    const purchase = await findPurchase(call.db, store.tenant, purchaseId)
    if (!purchase) continue
    const atMs = purchase.completed_ms ?? 0
    const pieces = ofSale.map((item) => ({ item, lineId: item.line_id ?? '', isAgain: false, atMs }))
    await reportSale(call, store, { key: keyOfPurchase(purchase), purchaseId }, pieces)
  }
}

/**
 * Takes goods back that came with another sale, which credits their money. Their former sale may be on its way. Goods in
 * `others`, for which untag took the money, are returned, too.
 */
export async function takeExchanged(
  call: Call,
  store: Row<'store'>,
  by: { key: string; storedMs: number; agentId: string | undefined; about: string },
  items: readonly Row<'protected_item'>[],
  others: ReadonlySet<string>,
): Promise<void> {
  const sold = items.filter((item) => isSold(item.item_status))
  const ofUntag = sold.filter((item) => others.has(item.purchase_id ?? ''))
  await moveBack(call, ofUntag, 'returned', { reason: `returned with ${by.about}`, reportedMs: by.storedMs })
  const mayWait = await itemsThatMayWait(
    call,
    items.filter((item) => MAY_BE_SOLD.has(item.item_status)),
  )
  const ofTills = sold.filter((item) => !ofUntag.includes(item))
  await reportForgotten(call, store, ofTills)
  await reportReturn(call, store, { ...by, key: EXCHANGE_KEY + by.key }, [...ofTills, ...mayWait])
}

/** Moves items back, through `returned` also if they go on sale again. Returns them by id. */
async function comeBack(
  call: Call,
  items: readonly Row<'protected_item'>[],
  request: KeptReturn,
  reportedMs: number,
  reason = request.reason ?? `return ${request.returnId}`,
): Promise<ReadonlyMap<string, Row<'protected_item'>>> {
  const by = { reason, reportedMs }
  const out = items.filter((item) => item.item_status !== 'returned')
  const moved = await moveBack(call, out, 'returned', by)
  const back = items.map((item) => moved.get(item.item_id) ?? item)
  return request.resellable === true
    ? moveBack(call, back, 'sellable', by)
    : new Map(back.map((item) => [item.item_id, item]))
}

/** The items, each once. */
function eachOnce(items: readonly Row<'protected_item'>[]): Row<'protected_item'>[] {
  return [...new Map(items.map((item) => [item.item_id, item])).values()]
}

/** Goods of this store that a return names by tags: `sold` at tills, `ofUntag`, or `unsold`. */
async function namedGoods(
  call: Call,
  store: Row<'store'>,
  request: KeptReturn,
  storedMs: number,
): Promise<Record<'sold' | 'ofUntag' | 'unsold', Row<'protected_item'>[]>> {
  const lists = [request, ...(request.lines ?? [])]
  const itemOf = await itemsWith(call.db, store.tenant, lists)
  const named = lists.flatMap(tagsOf).flatMap(({ kind, id, isValid }) => (isValid && itemOf({ [kind]: id })) || [])
  const here = eachOnce(named).filter((item) => item.store_id === store.store_id)
  const sold = here.filter((item) => isSold(item.item_status))
  const others = new Set<string>()
  for (const purchaseId of new Set(sold.flatMap((item) => item.purchase_id ?? []))) {
    const purchase = await findPurchase(call.db, store.tenant, purchaseId)
    if (purchase?.till === null && !isOlder(storedMs, purchase)) others.add(purchaseId)
  }
  return {
    sold: sold.filter((item) => !others.has(item.purchase_id ?? '')),
    ofUntag: sold.filter((item) => others.has(item.purchase_id ?? '')),
    unsold: here.filter((item) => MAY_BE_SOLD.has(item.item_status)),
  }
}

/**
 * Takes back goods that a return names by tags beside a sale that is not here: they alarm at once, and the return waits
 * for its sale. Returns the goods as they are now.
 */
export async function takeBackNamed(
  call: Call,
  store: Row<'store'>,
  request: KeptReturn,
  made: ReturnMade,
  saleKey: string,
): Promise<ReturnResult['items']> {
  const { sold, unsold } = await namedGoods(call, store, request, made.storedMs)
  const items = [...sold, ...(await itemsThatMayWait(call, unsold))]
  if (items.length === 0) return []
  const itemIds = items.map((item) => item.item_id)
  await reportForgotten(call, store, sold)
  const back = { ...made, key: made.returnKey, saleKey, isResellable: request.resellable, namedIds: new Set(itemIds) }
  await reportReturn(call, store, back, items)
  await settlePieces(call, store, itemIds)
  notifyGates(call, store.store_id)
  const now = await readItems(call.db, itemIds)
  return [...now.values()].map((item) => ({ tag: tagOf(item), itemStatus: item.item_status as ItemStatus }))
}

/** The goods that still belong to a sale, or to some of its lines. */
async function goodsOfSale(
  { db }: Call,
  saleKey: string,
  named: KeptReturn['lines'],
): Promise<Row<'protected_item'>[]> {
  const sale = await findSale(db, saleKey)
  const pieces = sale?.purchase_id ? await piecesOfReport(db, saleKey) : []
  const items = await readItems(
    db,
    pieces.map((piece) => piece.item_id),
  )
  const here = [...items.values()].filter((item) => item.purchase_id === sale?.purchase_id && isSold(item.item_status))
  if (!named) return here
  const ofSale = await readLines(db, sale?.purchase_id ?? '')
  const lines = named.flatMap(
    ({ lineId }) => ofSale.find((line) => line.line_id === lineId || line.till_line === lineId) ?? [],
  )
  // Which goods are meant is open.
  if (lines.length < named.length) return here
  return here.filter((item) => lines.some((line) => line.line_id === item.line_id))
}

/**
 * Takes goods back although their return cannot be booked: an agent has answered the till, and its gates alarm for them.
 * If the return names no tag, all goods of its sale or lines alarm. `isBooked`: its money counts for no sale.
 */
export async function keepReturned(
  call: Call,
  store: Row<'store'>,
  request: KeptReturn,
  {
    storedMs,
    agentId,
    isBooked,
    saleKey,
  }: { storedMs: number; agentId: string; isBooked: boolean; saleKey: string | undefined },
): Promise<void> {
  const { sold, ofUntag } = await namedGoods(call, store, request, storedMs)
  const ofTills = namesTags(request) || saleKey === undefined ? sold : await goodsOfSale(call, saleKey, request.lines)
  await reportForgotten(call, store, ofTills)
  const back = { key: returnKeyOf(store.store_id, request), storedMs, agentId, isResellable: request.resellable }
  if (!isBooked)
    await saveReturns(call.db, [
      {
        return_key: back.key,
        tenant: store.tenant,
        store_id: store.store_id,
        sale_key: '',
        body: JSON.stringify(request),
        content: returnContent(request),
        result: JSON.stringify({ returnId: request.returnId, items: [] } satisfies ReturnResult),
        stored_ms: storedMs,
        due_ms: null,
      },
    ])
  await reportReturn(call, store, { ...back, isBooked }, ofTills)
  await settlePieces(
    call,
    store,
    ofTills.map((item) => item.item_id),
  )
  await comeBack(call, ofUntag, request, storedMs, `return ${request.returnId}, which is not booked`)
  notifyGates(call, store.store_id)
}
