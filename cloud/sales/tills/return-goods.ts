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
import { groupBy, type Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { ITEM_UNKNOWN, itemsWith } from '../../protection/items/item-queries.ts'
import { notifyGates } from '../../protection/items/item-sequence.ts'
import { moveBack, PURCHASES_LIMIT } from '../../protection/items/move-by-staff.ts'
import { raiseException } from '../../protection/records/exceptions.ts'
import { amountsOfPieces, paidByLine } from '../../shop/purchases/line-value.ts'
import { isPaid } from '../../protection/authorize/item-facts.ts'
import { purchaseOfReceiptText } from '../../shop/receipts/operations.ts'
import { findPurchase, wholePurchase } from '../../shop/purchases/queries.ts'
import { assertFewRefunds, insertRefund, returnedPieces } from '../../shop/purchases/refunds.ts'
import { bookRefund, emitRefunded } from '../checkout/book-refund.ts'
import { choosePieces } from '../payments/refund-outcome.ts'
import { returnItems } from '../payments/refund-payment.ts'
import { findReturn, findSale, salesWithCode, saveReturns, soldTimes, waitingReturns } from './queries.ts'
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
  const result =
    purchaseId === undefined
      ? await returnTags(call, store, request, recorded)
      : await returnOf(call, store, purchaseId, request, recorded.storedMs)
  await saveReturns(db, [{ ...row, result: JSON.stringify(result) }])
  return { isNew: true, result }
}

function assertMayWait({ length }: readonly Row<'till_return'>[]): void {
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
    await applyWaiting(call, store, sale.purchase_id, JSON.parse(row.body) as KeptReturn, [row])
}

/** Applies a return that waited. `rows`: of the whole return, or of each of its items. */
async function applyWaiting(
  call: Call,
  store: Row<'store'>,
  purchaseId: string,
  request: KeptReturn,
  rows: readonly Row<'till_return'>[],
): Promise<void> {
  const [first] = rows
  if (!first) return
  const save = (result: ReturnResult) =>
    saveReturns(
      call.db,
      rows.map((row) => ({ ...row, result: JSON.stringify(result), due_ms: null })),
    )
  try {
    await save(await returnOf(call, store, purchaseId, request, first.stored_ms))
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    await save({ returnId: request.returnId, items: [] })
    await raiseException(
      { db: call.db, tenant: store.tenant, platform: call.services.platform, nowMs: call.nowMs },
      {
        storeId: store.store_id,
        kind: 'return_unclear',
        subject: first.return_key,
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
  storedMs: number,
): Promise<ReturnResult> {
  const purchase = await findPurchase(call.db, store.tenant, purchaseId)
  if (purchase?.store_id !== store.store_id)
    throw notFound('sale of this store', { path: 'purchaseId', fix: 'send the id that recordSales returned' })
  return returnPieces(call, store, purchase, request, storedMs)
}

/** Returns goods that are named only by their tags, perhaps of several sales. */
async function returnTags(
  call: Call,
  store: Row<'store'>,
  request: KeptReturn,
  recorded: ReturnRecorded,
): Promise<ReturnResult> {
  const itemOf = await itemsWith(call.db, store.tenant, [request])
  const found = tagsOf(request).map(({ kind, id, isValid }) => {
    const item = isValid ? itemOf({ [kind]: id }) : undefined
    if (item?.store_id !== store.store_id) throw invalid(`${kind}s`, `${id} ${ITEM_UNKNOWN}`, 'item_unknown')
    return item
  })
  const items = eachOnce(found)
  const [first] = items
  const purchaseId = first?.purchase_id ?? undefined
  const isOneSale = purchaseId !== undefined && items.every((item) => item.purchase_id === purchaseId)
  const purchase = isOneSale ? await findPurchase(call.db, store.tenant, purchaseId) : undefined
  if (purchase) {
    const since = await soldSince(call.db, items, recorded)
    const formerId = items.every((item) => since.get(item.item_id) === since.get(first?.item_id ?? ''))
      ? since.get(first?.item_id ?? '')
      : undefined
    const former = formerId ? await findPurchase(call.db, store.tenant, formerId) : undefined
    if (since.size > 0 && !former)
      throw precondition('sold_since', 'the goods were sold again after this return: return their last sale')
    return returnPieces(call, store, former ?? purchase, request, recorded.storedMs)
  }
  const purchases = new Set(items.flatMap((item) => item.purchase_id ?? []))
  if (purchaseId !== undefined || purchases.size > PURCHASES_LIMIT)
    throw invalid('epcs', 'were sold in several purchases: send one return for each', 'several_sales')
  const back = { returnId: request.returnId, items: [] as ReturnResult['items'] }
  // A refused return changes nothing, so all of its goods are checked first.
  for (const { item_status: from } of items)
    // Only staff end a hold.
    if (
      from === 'exception_hold' ||
      (from !== 'returned' && from !== 'sellable' && !mayItemMove(from as ItemStatus, 'returned'))
    )
      throw precondition('illegal_move', `an item that is ${from} cannot come back at a till: use updateItemStatus`, {
        allowedNext: nextItemStatuses(from as ItemStatus),
      })
  // Goods that count as unsold were perhaps sold at an agent whose report is on its way.
  const waiting = items.filter((item) => item.item_status === 'sellable')
  const moved = await comeBack(
    call,
    items.filter((item) => !waiting.includes(item)),
    request,
    recorded.storedMs,
  )
  await waitForSales(call, waiting, request, recorded.storedMs)
  for (const item of items) {
    const now = moved.get(item.item_id) ?? item
    back.items.push({ tag: tagOf(now), itemStatus: now.item_status as ItemStatus })
  }
  notifyGates(call, store.store_id)
  return { ...back, ...(waiting.length > 0 && { waiting: true as const }) }
}

const ITEM_KEY = 'item '

/** Those of these items for which no more returns wait than may. */
export async function itemsThatMayWait(
  db: Db,
  items: readonly Row<'protected_item'>[],
): Promise<Row<'protected_item'>[]> {
  const [first] = items
  if (!first) return []
  const waiting = groupBy(await waitingReturns(db, first.store_id, items.map(keyOfItem)), (row) => row.sale_key)
  return items.filter((item) => (waiting.get(keyOfItem(item))?.length ?? 0) < WAITING_RETURNS_LIMIT)
}

const keyOfItem = ({ item_id: itemId }: Row<'protected_item'>) => ITEM_KEY + itemId

/** Stores a return of items whose sales are not here yet, for each item. */
export async function waitForSales(
  call: Call,
  items: readonly Row<'protected_item'>[],
  request: KeptReturn,
  storedMs: number,
): Promise<void> {
  const [first] = items
  if (!first) return
  const waiting = await waitingReturns(call.db, first.store_id, items.map(keyOfItem))
  for (const ofItem of groupBy(waiting, (row) => row.sale_key).values()) assertMayWait(ofItem)
  const { returnId, resellable, reason } = request
  const [key, content] = [returnKeyOf(first.store_id, request), returnContent(request)]
  const rows = items.map((item): Row<'till_return'> => ({
    return_key: `${key} ${item.item_id}`,
    tenant: item.tenant,
    store_id: item.store_id,
    sale_key: keyOfItem(item),
    body: JSON.stringify({
      returnId,
      resellable,
      reason,
      codeHash: null,
      [item.epc === null ? (item.tag_uid === null ? 'tagIds' : 'tagUids') : 'epcs']: [tagOf(item)],
    }),
    content,
    result: null,
    stored_ms: storedMs,
    due_ms: call.nowMs + WAIT_FOR_SALE_MS,
  }))
  await saveReturns(call.db, rows)
}

/**
 * Applies returns of these items that came after their sale, but arrived before it. The items of one return come back
 * together, and those of too many returns with the last one.
 */
export async function applyReturnsOfItems(
  call: Call,
  store: Row<'store'>,
  purchaseId: string,
  itemIds: readonly string[],
  soldMs: number,
): Promise<void> {
  const keys = itemIds.map((itemId) => ITEM_KEY + itemId)
  const due = (await waitingReturns(call.db, store.store_id, keys)).filter((row) => row.stored_ms >= soldMs)
  // Of several returns of one item, the first came after this sale. The others wait for their own sales.
  const ofItems = [...groupBy(due, (row) => row.sale_key).values()]
  const firsts = ofItems.flatMap(([first]) => first ?? [])
  const returns = [...groupBy(firsts, ({ return_key: key }) => key.slice(0, key.indexOf(' '))).values()]
  const last = returns.slice(WAITING_RETURNS_LIMIT - 1).flat()
  for (const rows of [...returns.slice(0, WAITING_RETURNS_LIMIT - 1), last])
    await applyWaiting(call, store, purchaseId, joined(rows), rows)
}

/** The rows of the items of a return as one return. */
function joined(rows: readonly Row<'till_return'>[]): KeptReturn {
  const requests = rows.map(({ body }) => JSON.parse(body) as KeptReturn)
  const all = (list: 'epcs' | 'tagUids' | 'tagIds') => requests.flatMap((each) => each[list] ?? [])
  return {
    ...(requests[0] ?? { returnId: '', codeHash: null }),
    resellable: requests.every(({ resellable }) => resellable === true),
    epcs: all('epcs'),
    tagUids: all('tagUids'),
    tagIds: all('tagIds'),
  }
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
 * Moves the named goods back although their return cannot be booked: an agent has answered the till, and its gates alarm
 * for them.
 */
export async function keepReturned(
  call: Call,
  store: Row<'store'>,
  request: KeptReturn,
  recorded: Required<Omit<ReturnRecorded, 'saleKey'>>,
): Promise<void> {
  const lists = [request, ...(request.lines ?? [])]
  const itemOf = await itemsWith(call.db, store.tenant, lists)
  const named = lists.flatMap(tagsOf).flatMap(({ kind, id, isValid }) => (isValid && itemOf({ [kind]: id })) || [])
  const sold = eachOnce(named).filter((item) => item.store_id === store.store_id && isSold(item.item_status))
  const since = await soldSince(call.db, sold, recorded)
  const back = sold.filter((item) => !since.has(item.item_id))
  // The agent has told the till so, and may have sold the goods again.
  await comeBack(call, back, request, recorded.storedMs, `return ${request.returnId}, which is not booked`)
  notifyGates(call, store.store_id)
}

/** Maximum difference of the clocks in a store, ms (ADR trusted-time). */
const CLOCKS_DIFFER_MS = 60_000

/**
 * The items that an agent or till sold after the return was stored, so it is about an earlier sale, with the purchase of
 * that sale if it is known. An agent that sold goods of which it knew the return (`resold`) needs no margin.
 */
async function soldSince(
  db: Db,
  items: readonly Row<'protected_item'>[],
  { storedMs, agentId }: ReturnRecorded,
): Promise<ReadonlyMap<string, string | null>> {
  if (agentId === undefined) return new Map()
  const sales = await soldTimes(
    db,
    items.flatMap(({ purchase_id: purchaseId }) => purchaseId ?? []),
  )
  return new Map(
    items.flatMap(({ item_id: itemId, purchase_id: purchaseId }) => {
      const sale = sales.get(purchaseId ?? '')
      const former = sale?.resold[itemId]
      const marginMs = former === undefined ? CLOCKS_DIFFER_MS : 0
      return sale && sale.atMs > storedMs + marginMs ? [[itemId, former ?? null] as const] : []
    }),
  )
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
  reportedMs: number,
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
  const returned = await returnItems(call, purchase, pieces, refund.refund_id)
  const last =
    request.resellable === true
      ? await moveBack(call, returned, 'sellable', { reason, reportedMs })
      : new Map(returned.map((item) => [item.item_id, item]))
  const items = returned.flatMap(({ item_id: itemId }) => {
    const item = last.get(itemId)
    return item ? [{ tag: tagOf(item), itemStatus: item.item_status as ItemStatus }] : []
  })
  await bookRefund(call, purchase, refund)
  emitRefunded(call, refund, undefined)
  call.changed(purchase.purchase_id)
  if (items.length > 0) notifyGates(call, store.store_id)
  return { returnId: request.returnId, purchaseId: purchase.purchase_id, amountCent, items }
}
