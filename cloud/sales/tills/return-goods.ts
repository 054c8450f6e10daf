import {
  returnContent,
  returnKeyOf,
  saleKeyOf,
  tagsOf,
  WAITING_RETURNS_LIMIT,
  type KeptReturn,
} from '../../../policy/till-sale.ts'
import { isSold, mayItemMove, nextItemStatuses } from '../../../policy/item-status.ts'
import type { ItemStatus } from '../../../policy/vocabulary.ts'
import { Failure, invalid, notFound, precondition } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import { groupBy } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { ITEM_UNKNOWN, itemsWith, readItems } from '../../protection/items/item-queries.ts'
import { notifyGates } from '../../protection/items/item-sequence.ts'
import { moveBack, PURCHASES_LIMIT } from '../../protection/items/move-by-staff.ts'
import { raiseException } from '../../protection/records/exceptions.ts'
import { amountsOfPieces, paidByLine } from '../../shop/purchases/line-value.ts'
import { isPaid } from '../../protection/authorize/item-facts.ts'
import { purchaseOfReceiptText } from '../../shop/receipts/operations.ts'
import { boundItemsOf, findPurchase, readUnits, wholePurchase } from '../../shop/purchases/queries.ts'
import { assertFewRefunds, insertRefund, returnedPieces } from '../../shop/purchases/refunds.ts'
import { bookRefund, emitRefunded } from '../checkout/book-refund.ts'
import { choosePieces } from '../payments/refund-outcome.ts'
import { returnItems } from '../payments/refund-payment.ts'
import {
  findReturn,
  findSale,
  isWaitingReturn,
  pieceReports,
  piecesOfReport,
  salesWithCode,
  saveReturns,
  waitingReturns,
} from './queries.ts'
import { CLOCKS_DIFFER_MS } from './piece-history.ts'
import { reportReturn, reportSale, settlePieces } from './settle-pieces.ts'
import { WAIT_FOR_SALE_MS } from './void-sale.ts'
import { wantedOf } from './wanted-pieces.ts'

/** Goods that came back to a till (ADR till-sales). */

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
interface ReturnMade {
  readonly storedMs: number
  readonly agentId?: string
  readonly returnKey: string
}

/** Where a return was recorded. */
interface ReturnRecorded {
  /** When an agent or the cloud stored it, ms since 1970. */
  readonly storedMs: number
  /** Undefined: the cloud. */
  readonly agentId?: string
  /** Identity of the sale, if the agent knew it by a receipt or code, whose sale may not be here yet. */
  readonly saleKey?: string | undefined
}

/** Books a return, or finds it booked. Throws if it contradicts what was sold. */
export async function recordReturn(
  call: Call,
  store: Row<'store'>,
  request: KeptReturn,
  recorded: ReturnRecorded,
): Promise<{ isNew: boolean; result: ReturnResult }> {
  const { db, nowMs } = call
  const content = returnContent(request)
  const return_key = returnKeyOf(store.store_id, request)
  const known = await findReturn(db, return_key)
  if (known && known.content !== content)
    throw precondition('return_conflict', 'another return has this number: send a returnId of its own')
  if (known)
    return {
      isNew: false,
      result: known.result === null ? waitingOf(request) : (JSON.parse(known.result) as ReturnResult),
    }
  const saleKey = recorded.saleKey ?? (await saleKeyOfReturn(call, store, request, recorded))
  const row: Row<'till_return'> = {
    return_key,
    tenant: store.tenant,
    store_id: store.store_id,
    sale_key: saleKey ?? '',
    body: JSON.stringify(request),
    content,
    result: null,
    stored_ms: recorded.storedMs,
    due_ms: null,
  }
  const sale = saleKey === undefined ? undefined : await findSale(db, saleKey)
  if (sale && sale.store_id !== store.store_id) throw notFound('sale of this store')
  if (saleKey !== undefined && !sale?.purchase_id) {
    assertMayWait(await waitingReturns(db, store.store_id, [saleKey]))
    await saveReturns(db, [{ ...row, due_ms: nowMs + WAIT_FOR_SALE_MS }])
    return { isNew: true, result: waitingOf(request) }
  }
  const purchaseId = sale?.purchase_id ?? request.purchaseId
  const made = { ...recorded, returnKey: return_key }
  const result =
    purchaseId === undefined
      ? await returnTags(call, store, request, made, row)
      : await returnOf(call, store, purchaseId, request, made)
  await saveReturns(db, [
    { ...row, result: JSON.stringify(result), due_ms: result.waiting ? nowMs + WAIT_FOR_SALE_MS : null },
  ])
  return { isNew: true, result }
}

function assertMayWait({ length }: readonly unknown[]): void {
  if (length >= WAITING_RETURNS_LIMIT)
    throw precondition(
      'too_many_waiting_returns',
      `${WAITING_RETURNS_LIMIT} returns wait for this sale: send the sale first`,
    )
}

const waitingOf = ({ returnId }: KeptReturn): ReturnResult => ({ returnId, items: [], waiting: true })

/** Applies the returns that waited for a sale, or for one with these codes. What contradicts the sale becomes an exception. */
export async function applyWaitingReturns(
  call: Call,
  store: Row<'store'>,
  saleKey: string,
  codeHashes: readonly string[],
): Promise<void> {
  const sale = await findSale(call.db, saleKey)
  if (!sale?.purchase_id) return
  const keys = [saleKey, ...codeHashes.map((hash) => CODE_KEY + hash)]
  for (const row of await waitingReturns(call.db, store.store_id, keys))
    await applyWaiting(call, store, sale.purchase_id, row)
}

/** Applies a return that waited. */
async function applyWaiting(
  call: Call,
  store: Row<'store'>,
  purchaseId: string,
  row: Row<'till_return'>,
): Promise<void> {
  const request = JSON.parse(row.body) as KeptReturn
  const save = (result: ReturnResult) =>
    saveReturns(call.db, [{ ...row, result: JSON.stringify(result), due_ms: null }])
  try {
    const made = { storedMs: row.stored_ms, returnKey: row.return_key }
    await save(await returnOf(call, store, purchaseId, request, made))
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    await save({ returnId: request.returnId, items: [] })
    await raiseException(
      { db: call.db, tenant: store.tenant, platform: call.services.platform, nowMs: call.nowMs },
      {
        storeId: store.store_id,
        kind: 'return_unclear',
        subject: row.return_key,
        purchaseId,
        detail: `the return ${request.returnId} arrived before its sale and does not fit it: ${error.message}`,
      },
    )
  }
}

/** Before the hash of a code whose sale is not here yet. */
const CODE_KEY = 'code '

/** Identity of the sale of a return; undefined if the return names a purchase or only tags. */
async function saleKeyOfReturn(
  call: Call,
  store: Row<'store'>,
  request: KeptReturn,
  { agentId }: ReturnRecorded,
): Promise<string | undefined> {
  const { saleId, purchaseId, receipt, codeHash, lines: pieces } = request
  const names = { saleId, purchaseId, receipt, code: codeHash ?? undefined }
  const sent = Object.keys(names).filter((name) => names[name as keyof typeof names] !== undefined)
  if (sent.length > 1) throw invalid(sent[1] ?? '', `excludes ${sent[0] ?? ''}: name the sale once`)
  if (pieces && tagsOf(request).length > 0) throw invalid('lines', 'excludes tags outside of the lines')
  if (saleId !== undefined) return saleKeyOf(store.store_id, { saleId, tillId: request.tillId, series: request.series })
  if (codeHash !== null) {
    // An agent has answered the till: the sale may be on its way from another one.
    const isUnknown = agentId !== undefined && (await salesWithCode(call.db, store.store_id, codeHash, 0)).length === 0
    return isUnknown ? CODE_KEY + codeHash : saleKeyOfCode(call, store, codeHash)
  }
  if (receipt !== undefined) {
    const purchase = await purchaseOfReceiptText(call, receipt)
    if (purchase?.store_id !== store.store_id)
      throw notFound('receipt of this store', { path: 'receipt', fix: 'send the whole text of the QR code' })
    assertOfTill(purchase)
    return purchase.cti ?? undefined
  }
  if (purchaseId === undefined && tagsOf(request).length === 0)
    throw invalid(
      'saleId',
      'is missing: name the sale by saleId, purchaseId, receipt or code, or its goods by tags',
      'missing',
    )
  if (purchaseId === undefined && pieces)
    throw invalid('lines', 'needs a sale: send saleId, purchaseId, receipt or code')
  return undefined
}

/** Identity of the sale that printed the code with this hash since `sinceMs`. Throws 404 and 409. */
export async function saleKeyOfCode(
  { db }: Call,
  { store_id: storeId }: Row<'store'>,
  codeHash: string,
  sinceMs = 0,
): Promise<string> {
  const [sale, another] = await salesWithCode(db, storeId, codeHash, sinceMs)
  if (!sale) throw notFound('sale with this code', { path: 'code', fix: 'send the saleId, or a tag of the goods' })
  if (another) throw precondition('code_of_several_sales', 'several sales printed this code: send the saleId')
  return sale.sale_key
}

async function returnOf(
  call: Call,
  store: Row<'store'>,
  purchaseId: string,
  request: KeptReturn,
  made: ReturnMade,
): Promise<ReturnResult> {
  const purchase = await findPurchase(call.db, store.tenant, purchaseId)
  if (purchase?.store_id !== store.store_id)
    throw notFound('sale of this store', { path: 'purchaseId', fix: 'send the id that recordSales returned' })
  return returnPieces(call, store, purchase, request, made)
}

/**
 * Returns goods that are named only by their tags. The reports about each piece tell of which sale; if that is not here
 * yet, the return waits for it. `row`: the return, to be stored.
 */
async function returnTags(
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
  await assertMayComeBack(call, items, made.storedMs)
  await saveReturns(call.db, [row])
  // Goods that count as unsold, or returned, were perhaps sold at an agent whose report is on its way.
  const returned = items.filter((item) => item.item_status === 'returned')
  const waits = items.filter((item) => item.item_status !== 'returned')
  await assertFewWaiting(call, waits)
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
async function assertMayComeBack(call: Call, items: readonly Row<'protected_item'>[], storedMs: number): Promise<void> {
  const sold = items.filter((item) => isSold(item.item_status))
  const purchases = new Set(sold.flatMap((item) => item.purchase_id ?? []))
  if (purchases.size > 1 || new Set(items.map((item) => item.purchase_id)).size > PURCHASES_LIMIT)
    throw invalid('epcs', 'were sold in several purchases: send one return for each', 'several_sales')
  for (const purchaseId of purchases) {
    const purchase = await findPurchase(call.db, sold[0]?.tenant ?? '', purchaseId)
    if (purchase && !isOlder(storedMs, purchase)) assertOfTill(purchase)
  }
  for (const { item_status: from } of items)
    // Only staff end a hold.
    if (
      from === 'exception_hold' ||
      (from !== 'returned' && from !== 'sellable' && !mayItemMove(from as ItemStatus, 'returned'))
    )
      throw precondition('illegal_move', `an item that is ${from} cannot come back at a till: use updateItemStatus`, {
        allowedNext: nextItemStatuses(from as ItemStatus),
      })
}

/** Those of these pieces for which few returns wait. */
async function itemsThatMayWait(
  { db }: Call,
  items: readonly Row<'protected_item'>[],
): Promise<Row<'protected_item'>[]> {
  const reports = await pieceReports(
    db,
    items.map((item) => item.item_id),
  )
  const waiting = (item: Row<'protected_item'>) => reports.get(item.item_id)?.filter(isWaitingReturn).length ?? 0
  return items.filter((item) => waiting(item) < WAITING_RETURNS_LIMIT)
}

/** Throws if too many returns wait for a sale of one of these pieces. */
async function assertFewWaiting({ db }: Call, items: readonly Row<'protected_item'>[]): Promise<void> {
  const reports = await pieceReports(
    db,
    items.map((item) => item.item_id),
  )
  for (const ofItem of reports.values()) assertMayWait(ofItem.filter(isWaitingReturn))
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
    if (!purchase?.cti) continue
    const atMs = purchase.completed_ms ?? 0
    const pieces = ofSale.map((item) => ({ item, lineId: item.line_id ?? '', knew: 'nothing' as const, atMs }))
    await reportSale(call, store, { key: purchase.cti, purchaseId }, pieces)
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
    items.filter((item) => item.item_status === 'sellable' || item.item_status === 'returned'),
  )
  const ofTills = sold.filter((item) => !ofUntag.includes(item))
  await reportForgotten(call, store, ofTills)
  await reportReturn(call, store, { ...by, key: `with ${by.key}` }, [...ofTills, ...mayWait])
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

/**
 * Takes the named goods back although their return cannot be booked: an agent has answered the till, and its gates alarm
 * for them.
 */
export async function keepReturned(
  call: Call,
  store: Row<'store'>,
  request: KeptReturn,
  { storedMs, agentId }: { storedMs: number; agentId: string },
): Promise<void> {
  const lists = [request, ...(request.lines ?? [])]
  const itemOf = await itemsWith(call.db, store.tenant, lists)
  const named = lists.flatMap(tagsOf).flatMap(({ kind, id, isValid }) => (isValid && itemOf({ [kind]: id })) || [])
  const sold = eachOnce(named).filter((item) => item.store_id === store.store_id && isSold(item.item_status))
  const others = new Set<string>()
  for (const purchaseId of new Set(sold.flatMap((item) => item.purchase_id ?? []))) {
    const purchase = await findPurchase(call.db, store.tenant, purchaseId)
    if (purchase?.till === null && !isOlder(storedMs, purchase)) others.add(purchaseId)
  }
  const ofTills = sold.filter((item) => !others.has(item.purchase_id ?? ''))
  await reportForgotten(call, store, ofTills)
  const back = { key: returnKeyOf(store.store_id, request), storedMs, agentId, isResellable: request.resellable }
  await reportReturn(call, store, { ...back, isBooked: true }, ofTills)
  await settlePieces(
    call,
    store,
    ofTills.map((item) => item.item_id),
  )
  await comeBack(
    call,
    sold.filter((item) => !ofTills.includes(item)),
    request,
    storedMs,
    `return ${request.returnId}, which is not booked`,
  )
  notifyGates(call, store.store_id)
}

const tagOf = ({ epc, tag_uid, tag_id }: Row<'protected_item'>) => epc ?? tag_uid ?? tag_id ?? ''

function assertOfTill({ till }: Row<'purchase'>): void {
  if (till === null)
    throw precondition('not_sold_at_a_till', 'untag took the money of this purchase: return it with refundPayment')
}

async function returnPieces(
  call: Call,
  store: Row<'store'>,
  purchase: Row<'purchase'>,
  request: KeptReturn,
  { storedMs: reportedMs, agentId, returnKey }: ReturnMade,
): Promise<ReturnResult> {
  assertOfTill(purchase)
  if (!isPaid(purchase)) throw precondition('purchase_not_refundable', 'this sale is void', { allowedNext: [] })
  const whole = await wholePurchase(call, purchase)
  const gone = returnedPieces(whole.refunds)
  const pieces = await choosePieces(call, whole, gone, await wantedOf(call, whole, gone, request))
  const paid = amountsOfPieces(pieces, whole.lines, paidByLine(whole.lines), gone)
  assertFewRefunds(whole.refunds)
  const amountCent = paid.reduce((sum, { cent }) => sum + cent, 0)
  const reason = request.reason ?? `return ${request.returnId}`
  const refund = await insertRefund(call, {
    purchase,
    payment: null,
    kind: 'part',
    amountCent,
    state: 'done',
    lines: pieces,
    reason,
  })
  const returned = await returnItems(call, purchase, pieces, refund.refund_id, { reportedMs })
  if (request.resellable === true) await moveBack(call, returned, 'sellable', { reason, reportedMs })
  await bookRefund(call, purchase, refund)
  emitRefunded(call, refund, undefined)
  const named = new Set(pieces.flatMap(({ itemLineId, unitNos }) => unitNos.map((unitNo) => `${itemLineId}/${unitNo}`)))
  const units = (await readUnits(call.db, purchase.purchase_id)).filter((unit) =>
    named.has(`${unit.line_id}/${unit.unit_no}`),
  )
  const back = await readItems(call.db, boundItemsOf(units))
  const of = { storedMs: reportedMs, agentId, saleKey: purchase.cti ?? '', isResellable: request.resellable }
  await reportReturn(call, store, { ...of, key: returnKey, isBooked: true }, [...back.values()])
  await settlePieces(call, store, [...back.keys()])
  const now = await readItems(
    call.db,
    returned.map((item) => item.item_id),
  )
  const items = [...now.values()].map((item) => ({ tag: tagOf(item), itemStatus: item.item_status as ItemStatus }))
  call.changed(purchase.purchase_id)
  if (items.length > 0) notifyGates(call, store.store_id)
  return { returnId: request.returnId, purchaseId: purchase.purchase_id, amountCent, items }
}
