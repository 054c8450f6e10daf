import {
  receiptCodeHash,
  returnContent,
  returnKeyOf,
  saleKeyOf,
  tagsOf,
  type TillReturn,
} from '../../../policy/till-sale.ts'
import { mayItemMove, nextItemStatuses } from '../../../policy/item-status.ts'
import type { ItemStatus } from '../../../policy/vocabulary.ts'
import { Failure, invalid, notFound, precondition } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { ProtectedItemRow } from '../../platform/persistence/tables/protection.ts'
import type { PurchaseRow } from '../../platform/persistence/tables/purchases.ts'
import type { StoreRow } from '../../platform/persistence/tables/stores.ts'
import type { TillReturnRow } from '../../platform/persistence/tables/tills.ts'
import { findItem, ITEM_UNKNOWN, readItem } from '../../protection/items/item-queries.ts'
import { notifyGates } from '../../protection/items/item-sequence.ts'
import { moveByStaff } from '../../protection/items/move-by-staff.ts'
import { raiseException } from '../../protection/records/exceptions.ts'
import { amountsOfPieces, isCoupon, paidByLine } from '../../shop/purchases/line-value.ts'
import { isPaid } from '../../protection/authorize/item-facts.ts'
import { purchaseOfReceiptText } from '../../shop/receipts/operations.ts'
import type { WholePurchase } from '../../shop/purchases/present.ts'
import { findPurchase, wholePurchase } from '../../shop/purchases/queries.ts'
import { refundsOf } from '../../shop/purchases/refund-queries.ts'
import { insertRefund, refundableCent, returnedPieces } from '../../shop/purchases/refunds.ts'
import { bookRefund, emitRefunded } from '../checkout/book-refund.ts'
import { choosePieces } from '../payments/refund-outcome.ts'
import { returnItems } from '../payments/refund-payment.ts'
import { findReturn, findSale, saleOfPurchase, salesWithCode, saveReturn, waitingReturns } from './queries.ts'
import { WAIT_FOR_SALE_MS } from './void-sale.ts'

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
}

/** Books a return, or finds it booked. Throws if it contradicts what was sold. */
export async function recordReturn(
  call: Call,
  store: StoreRow,
  request: TillReturn,
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
  const saleKey = await saleKeyOfReturn(call, store, request)
  const row: TillReturnRow = {
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
  if (saleKey !== undefined && !sale?.purchase_id) {
    await saveReturn(db, { ...row, due_ms: nowMs + WAIT_FOR_SALE_MS })
    return { isNew: true, result: waitingOf(request) }
  }
  const purchaseId = sale?.purchase_id ?? request.purchaseId
  const result =
    purchaseId === undefined
      ? await returnTags(call, store, request, recorded)
      : await returnOf(call, store, purchaseId, request, recorded.storedMs)
  await saveReturn(db, { ...row, result: JSON.stringify(result) })
  return { isNew: true, result }
}

const waitingOf = ({ returnId }: TillReturn): ReturnResult => ({ returnId, items: [], waiting: true })

/** Applies the returns that waited for a sale. What contradicts the sale becomes an exception. */
export async function applyWaitingReturns(call: Call, store: StoreRow, saleKey: string): Promise<void> {
  const sale = await findSale(call.db, saleKey)
  if (!sale?.purchase_id) return
  for (const row of await waitingReturns(call.db, saleKey)) await applyWaiting(call, store, sale.purchase_id, row)
}

async function applyWaiting(call: Call, store: StoreRow, purchaseId: string, row: TillReturnRow): Promise<void> {
  const request = JSON.parse(row.body) as TillReturn
  try {
    const result = await returnOf(call, store, purchaseId, request, row.stored_ms)
    await saveReturn(call.db, { ...row, result: JSON.stringify(result), due_ms: null })
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const result = JSON.stringify({ returnId: request.returnId, items: [] })
    await saveReturn(call.db, { ...row, result, due_ms: null })
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

/** Identity of the sale of a return; undefined if the return names a purchase or only tags. */
async function saleKeyOfReturn(call: Call, store: StoreRow, request: TillReturn): Promise<string | undefined> {
  const { saleId, purchaseId, receipt, code, lines: pieces } = request
  const names = { saleId, purchaseId, receipt, code }
  const sent = Object.keys(names).filter((name) => names[name as keyof typeof names] !== undefined)
  if (sent.length > 1) throw invalid(sent[1] ?? '', `excludes ${sent[0] ?? ''}: name the sale once`)
  if (pieces && tagsOf(request).length > 0) throw invalid('lines', 'excludes tags outside of the lines')
  if (saleId !== undefined) return saleKeyOf(store.store_id, { saleId, tillId: request.tillId, series: request.series })
  if (code !== undefined) return saleKeyOfCode(call, store, code)
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

/** Identity of the sale that printed this code since `sinceMs`. Throws 404 and 409. */
export async function saleKeyOfCode(
  { db }: Call,
  { store_id: storeId }: StoreRow,
  code: string,
  sinceMs = 0,
): Promise<string> {
  const [sale, another] = await salesWithCode(db, storeId, receiptCodeHash(storeId, code), sinceMs)
  if (!sale) throw notFound('sale with this code', { path: 'code', fix: 'send the saleId, or a tag of the goods' })
  if (another) throw precondition('code_of_several_sales', 'several sales printed this code: send the saleId')
  return sale.sale_key
}

async function returnOf(
  call: Call,
  store: StoreRow,
  purchaseId: string,
  request: TillReturn,
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
  store: StoreRow,
  request: TillReturn,
  recorded: ReturnRecorded,
): Promise<ReturnResult> {
  const items: ProtectedItemRow[] = []
  for (const { kind, id, isValid } of tagsOf(request)) {
    const item = isValid ? await findItem(call.db, store.tenant, { [kind]: id }) : undefined
    if (item?.store_id !== store.store_id) throw invalid(`${kind}s`, `${id} ${ITEM_UNKNOWN}`, 'item_unknown')
    if (!items.some((each) => each.item_id === item.item_id)) items.push(item)
  }
  const [first] = items
  const purchaseId = first?.purchase_id ?? undefined
  const isOneSale = purchaseId !== undefined && items.every((item) => item.purchase_id === purchaseId)
  const purchase = isOneSale ? await findPurchase(call.db, store.tenant, purchaseId) : undefined
  if (purchase) {
    if (await isSoldSince(call, purchase, recorded))
      throw precondition('sold_since', 'the goods were sold again after this return: return their last sale')
    return returnPieces(call, store, purchase, request, recorded.storedMs)
  }
  if (purchaseId !== undefined)
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
  for (const item of waiting) await waitForSale(call, item, request, recorded.storedMs)
  for (const item of items)
    back.items.push(
      waiting.includes(item)
        ? { tag: tagOf(item), itemStatus: 'sellable' as const }
        : await comeBack(call, item, request, recorded.storedMs),
    )
  notifyGates(call, store.store_id)
  return { ...back, ...(waiting.length > 0 && { waiting: true as const }) }
}

const ITEM_KEY = 'item '

/** Stores a return of one item whose sale is not here yet. */
async function waitForSale(call: Call, item: ProtectedItemRow, request: TillReturn, storedMs: number): Promise<void> {
  const { returnId, resellable, reason } = request
  const body = {
    returnId,
    resellable,
    reason,
    [item.epc === null ? (item.tag_uid === null ? 'tagIds' : 'tagUids') : 'epcs']: [tagOf(item)],
  }
  await saveReturn(call.db, {
    return_key: `${returnKeyOf(item.store_id, request)} ${item.item_id}`,
    tenant: item.tenant,
    store_id: item.store_id,
    sale_key: ITEM_KEY + item.item_id,
    body: JSON.stringify(body),
    content: returnContent(request),
    result: null,
    stored_ms: storedMs,
    due_ms: call.nowMs + WAIT_FOR_SALE_MS,
  })
}

/** Applies returns of these items that came after their sale, but arrived before it. */
export async function applyReturnsOfItems(
  call: Call,
  store: StoreRow,
  purchaseId: string,
  itemIds: readonly string[],
  soldMs: number,
): Promise<void> {
  for (const itemId of itemIds)
    for (const row of await waitingReturns(call.db, ITEM_KEY + itemId))
      if (row.stored_ms >= soldMs) await applyWaiting(call, store, purchaseId, row)
}

/** Moves an item back that no purchase of untag sold. */
async function comeBack(
  call: Call,
  item: ProtectedItemRow,
  request: TillReturn,
  reportedMs: number,
): Promise<ReturnResult['items'][number]> {
  const from = item.item_status as ItemStatus
  const by = { reason: request.reason ?? `return ${request.returnId}`, reportedMs }
  let moved = from === 'returned' ? item : await moveByStaff(call, item, 'returned', by)
  if (request.resellable === true) moved = await moveByStaff(call, moved, 'sellable', by)
  return { tag: tagOf(moved), itemStatus: moved.item_status as ItemStatus }
}

/**
 * Moves the named goods back although their return cannot be booked: an agent has answered the till, and its gates alarm
 * for them.
 */
export async function keepReturned(
  call: Call,
  store: StoreRow,
  request: TillReturn,
  recorded: Required<ReturnRecorded>,
): Promise<void> {
  const named = [...tagsOf(request), ...(request.lines ?? []).flatMap(tagsOf)]
  for (const { kind, id, isValid } of named) {
    const item = isValid ? await findItem(call.db, store.tenant, { [kind]: id }) : undefined
    if (item?.store_id !== store.store_id || (item.item_status !== 'paid' && item.item_status !== 'picked_up')) continue
    const purchase = item.purchase_id === null ? undefined : await findPurchase(call.db, item.tenant, item.purchase_id)
    if (purchase && (await isSoldSince(call, purchase, recorded))) continue
    const reason = `return ${request.returnId}, which is not booked`
    await moveByStaff(call, item, 'returned', { reason, reportedMs: recorded.storedMs })
  }
  notifyGates(call, store.store_id)
}

/** Maximum difference of the clocks in a store, ms (ADR trusted-time). */
const CLOCKS_DIFFER_MS = 60_000

/** True if an agent stored the return before this sale, so it is about an earlier sale of the goods. */
async function isSoldSince(
  { db }: Call,
  purchase: PurchaseRow,
  { storedMs, agentId }: ReturnRecorded,
): Promise<boolean> {
  if (agentId === undefined) return false
  const soldMs = (await saleOfPurchase(db, purchase.purchase_id))?.stored_ms ?? purchase.completed_ms
  return soldMs !== null && soldMs > storedMs + CLOCKS_DIFFER_MS
}

const tagOf = ({ epc, tag_uid, tag_id }: ProtectedItemRow) => epc ?? tag_uid ?? tag_id ?? ''

function assertOfTill({ till }: PurchaseRow): void {
  if (till === null)
    throw precondition('not_sold_at_a_till', 'untag took the money of this purchase: return it with refundPayment')
}

async function returnPieces(
  call: Call,
  store: StoreRow,
  purchase: PurchaseRow,
  request: TillReturn,
  reportedMs: number,
): Promise<ReturnResult> {
  assertOfTill(purchase)
  if (!isPaid(purchase)) throw precondition('purchase_not_refundable', 'this sale is void', { allowedNext: [] })
  const whole = await wholePurchase(call, purchase)
  const gone = returnedPieces(whole.refunds)
  const pieces = await choosePieces(call, whole, gone, await wantedOf(call, whole, gone, request))
  const paid = amountsOfPieces(pieces, whole.lines, paidByLine(whole.lines), gone)
  const left = Math.max(0, refundableCent(purchase, await refundsOf(call.db, purchase.purchase_id)))
  const amountCent = Math.min(
    left,
    paid.reduce((sum, { cent }) => sum + cent, 0),
  )
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
  const items: ReturnResult['items'] = []
  for (const item of returned) {
    const last =
      request.resellable === true
        ? await moveByStaff(call, await readItem(call.db, item.item_id), 'sellable', { reason, reportedMs })
        : item
    items.push({ tag: tagOf(last), itemStatus: last.item_status as ItemStatus })
  }
  await bookRefund(call, purchase, refund)
  emitRefunded(call, refund, undefined)
  call.changed(purchase.purchase_id)
  if (items.length > 0) notifyGates(call, store.store_id)
  return { returnId: request.returnId, purchaseId: purchase.purchase_id, amountCent, items }
}

type Wanted = Parameters<typeof choosePieces>[3][number]

/** The lines of untag that a return names by the till's lines, by tags, or by nothing: all that is left. */
async function wantedOf(
  { db }: Call,
  { purchase: { tenant }, lines: all }: WholePurchase,
  gone: ReturnType<typeof returnedPieces>,
  request: TillReturn,
): Promise<Wanted[]> {
  if (request.lines)
    return request.lines.map(({ lineId, quantity, ...tags }, i) => {
      const line = all.find(({ till_line }) => till_line === lineId)
      if (!line)
        throw notFound('line of this sale', {
          path: `lines[${i}].lineId`,
          fix: 'send the lineId of recordSales, or its position',
        })
      if (quantity !== undefined && line.weight_grams === null && !Number.isInteger(quantity))
        throw invalid(`lines[${i}].quantity`, 'must be whole, because the line has pieces')
      // Weighed goods are one piece.
      const count = quantity === undefined ? undefined : line.weight_grams === null ? quantity : 1
      return { itemLineId: line.line_id, quantity: count, ...tags }
    })
  const tags = tagsOf(request)
  if (tags.length === 0)
    return all
      .filter((line) => !isCoupon(line) && line.quantity > (gone.get(line.line_id)?.quantity ?? 0))
      .map((line) => ({ itemLineId: line.line_id }))
  const wanted = new Map<string, { itemLineId: string; epcs: string[]; tagUids: string[]; tagIds: string[] }>()
  for (const { kind, id, isValid } of tags) {
    const item = isValid ? await findItem(db, tenant, { [kind]: id }) : undefined
    const lineId = item?.line_id ?? ''
    if (!all.some((line) => line.line_id === lineId))
      throw invalid(`${kind}s`, `${id} is not a piece of this sale`, 'item_unknown')
    const wish = wanted.get(lineId) ?? { itemLineId: lineId, epcs: [], tagUids: [], tagIds: [] }
    wish[`${kind}s`].push(id)
    wanted.set(lineId, wish)
  }
  return [...wanted.values()]
}
