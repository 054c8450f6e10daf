import {
  returnContent,
  returnKeyOf,
  saleKeyOf,
  saleTagKey,
  tagsOf,
  whyReturnUnclear,
  type KeptReturn,
  type KeptSale,
  type SaleTag,
} from '../../../policy/till-sale.ts'
import type { ItemStatus } from '../../../policy/vocabulary.ts'
import { Failure, invalid, notFound, precondition } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { itemsWith, readItems } from '../../protection/items/item-queries.ts'
import { notifyGates } from '../../protection/items/item-sequence.ts'
import { moveBack } from '../../protection/items/move-by-staff.ts'
import { raiseException } from '../../protection/records/exceptions.ts'
import { amountsOfPieces, paidByLine } from '../../shop/purchases/line-value.ts'
import { isPaid } from '../../protection/authorize/item-facts.ts'
import { purchaseOfReceiptText } from '../../shop/receipts/operations.ts'
import {
  boundItemsOf,
  findPurchase,
  findPurchaseOfReceipt,
  readPurchase,
  readUnits,
  wholePurchase,
} from '../../shop/purchases/queries.ts'
import { assertFewRefunds, insertTillRefund, returnedPieces } from '../../shop/purchases/refunds.ts'
import { bookRefund, emitRefunded } from '../checkout/book-refund.ts'
import { choosePieces } from '../payments/refund-outcome.ts'
import { returnItems } from '../payments/refund-payment.ts'
import {
  bookedReturns,
  findReturn,
  findSale,
  keyOfPurchase,
  piecesOfReport,
  saveReports,
  salesWithCode,
  saveReturns,
  waitingReturns,
} from './queries.ts'
import {
  assertMayWait,
  assertOfTill,
  returnTags,
  tagOf,
  takeBackNamed,
  type ReturnMade,
  type ReturnResult,
} from './returned-tags.ts'
import { CLOCKS_DIFFER_MS } from './piece-history.ts'
import { reportReturn } from './piece-reports.ts'
import { endPieces } from './end-pieces.ts'
import { giveStockBack } from './move-stock.ts'
import { settlePieces } from './settle-pieces.ts'
import { WAIT_FOR_SALE_MS } from './void-sale.ts'
import { wantedOf } from './wanted-pieces.ts'

/** Goods that came back to a till (ADR till-sales). */

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
  // An agent stored it before another copy reached the cloud: sales since then are newer.
  if (known && recorded.storedMs < known.stored_ms) await reportEarlier(call, store, return_key, recorded)
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
  // Identities of sales are forgotten before their purchases.
  const former = saleKey === undefined || sale ? undefined : await purchaseWithKey(call, store, saleKey)
  const soldId = sale?.purchase_id ?? former?.purchase_id
  const made = { ...recorded, returnKey: return_key }
  if (saleKey !== undefined && soldId === undefined) {
    assertMayWait(await waitingReturns(db, store.store_id, [saleKey]))
    await saveReturns(db, [{ ...row, due_ms: nowMs + WAIT_FOR_SALE_MS }])
    const items = await takeBackNamed(call, store, request, made, saleKey)
    return { isNew: true, result: { ...waitingOf(request), items } }
  }
  const purchaseId = soldId ?? request.purchaseId
  const result =
    purchaseId === undefined
      ? await returnTags(call, store, request, made, row)
      : await returnOf(call, store, purchaseId, request, made)
  const named = saleKey === undefined && purchaseId !== undefined ? await readPurchase(db, purchaseId) : undefined
  await saveReturns(db, [
    {
      ...row,
      ...(named && { sale_key: keyOfPurchase(named) }),
      result: JSON.stringify(result),
      due_ms: result.waiting ? nowMs + WAIT_FOR_SALE_MS : null,
    },
  ])
  return { isNew: true, result }
}

/** Finds the purchase with this key (`keyOfPurchase`). */
async function purchaseWithKey({ db }: Call, { tenant }: Row<'store'>, key: string) {
  return (await findPurchaseOfReceipt(db, key)) ?? findPurchase(db, tenant, key)
}

async function reportEarlier(
  call: Call,
  store: Row<'store'>,
  returnKey: string,
  { storedMs, agentId }: ReturnRecorded,
): Promise<void> {
  const reports = await piecesOfReport(call.db, returnKey)
  await call.db.updateTable('till_return').set({ stored_ms: storedMs }).where('return_key', '=', returnKey).execute()
  await saveReports(
    call.db,
    reports.map((report) => ({ ...report, at_ms: storedMs, agent_id: agentId ?? null })),
  )
  await settlePieces(
    call,
    store,
    reports.map((report) => report.item_id),
  )
}

const waitingOf = ({ returnId }: KeptReturn): ReturnResult => ({ returnId, items: [], waiting: true })

/**
 * The returns that wait for a sale with this key, or with its codes, the oldest first. A till may print a code again, so a
 * return by code waits for no sale after it.
 */
export async function returnsAwaiting(
  { db }: Call,
  { store_id: storeId }: Row<'store'>,
  saleKey: string,
  { codeHashes, occurredAt }: KeptSale,
): Promise<Row<'till_return'>[]> {
  const waiting = await waitingReturns(db, storeId, [saleKey, ...codeHashes.map((hash) => CODE_KEY + hash)])
  return waiting.filter(
    ({ sale_key, stored_ms }) => sale_key === saleKey || Date.parse(occurredAt) <= stored_ms + CLOCKS_DIFFER_MS,
  )
}

/** Applies a return that waited for its sale. What contradicts the sale becomes an exception. */
export async function applyWaiting(
  call: Call,
  store: Row<'store'>,
  purchaseId: string,
  row: Row<'till_return'>,
): Promise<void> {
  const request = JSON.parse(row.body) as KeptReturn
  const save = (result: ReturnResult) =>
    saveReturns(call.db, [{ ...row, result: JSON.stringify(result), due_ms: null }])
  try {
    const made = { storedMs: row.stored_ms, returnKey: row.return_key, isLate: true } as const
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
  const { saleId, purchaseId, receipt, codeHash } = request
  const unclear = whyReturnUnclear(request)
  if (unclear) throw invalid(unclear.field, unclear.message)
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
    return keyOfPurchase(purchase)
  }
  if (purchaseId === undefined && tagsOf(request).length === 0)
    throw invalid(
      'saleId',
      'is missing: name the sale by saleId, purchaseId, receipt or code, or its goods by tags',
      'missing',
    )
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

async function returnPieces(
  call: Call,
  store: Row<'store'>,
  purchase: Row<'purchase'>,
  request: KeptReturn,
  { storedMs: reportedMs, agentId, returnKey, isLate }: ReturnMade,
): Promise<ReturnResult> {
  assertOfTill(purchase)
  if (!isPaid(purchase)) throw precondition('purchase_not_refundable', 'this sale is void', { allowedNext: [] })
  const whole = await wholePurchase(call, purchase)
  const gone = returnedPieces(whole.refunds)
  await assertNotBack(call, store, purchase, request)
  const pieces = await choosePieces(call, whole, gone, await wantedOf(call, whole, gone, request))
  const paid = amountsOfPieces(pieces, whole.lines, paidByLine(whole.lines), gone)
  assertFewRefunds(whole.refunds)
  const amountCent = paid.reduce((sum, { cent }) => sum + cent, 0)
  const reason = request.reason ?? `return ${request.returnId}`
  const refund = await insertTillRefund(call, { purchase, amountCent, lines: pieces, reason })
  const returned = await returnItems(call, purchase, pieces, refund.refund_id, { reportedMs })
  await endPieces(call, store, purchase)
  if (request.resellable === true) {
    await moveBack(call, returned, 'sellable', { reason, reportedMs })
    await giveStockBack(call, store, whole.lines, pieces)
  }
  await bookRefund(call, purchase, refund)
  emitRefunded(call, refund, undefined)
  const named = new Set(pieces.flatMap(({ itemLineId, unitNos }) => unitNos.map((unitNo) => `${itemLineId}/${unitNo}`)))
  const units = (await readUnits(call.db, purchase.purchase_id)).filter((unit) =>
    named.has(`${unit.line_id}/${unit.unit_no}`),
  )
  const back = await readItems(call.db, boundItemsOf(units))
  const of = { storedMs: reportedMs, agentId, saleKey: keyOfPurchase(purchase), isResellable: request.resellable }
  const namedIds = await namedItems(call, store, request)
  await reportReturn(call, store, { ...of, key: returnKey, isBooked: true, isLate, namedIds }, [...back.values()])
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

/** Throws 409 if a tag came back to this sale before. Else a piece without a known tag would come back in its place. */
async function assertNotBack(
  { db }: Call,
  store: Row<'store'>,
  purchase: Row<'purchase'>,
  request: KeptReturn,
): Promise<void> {
  const listsOf = (each: KeptReturn) => [each, ...(each.lines ?? [])]
  const own = listsOf(request).flatMap(tagsOf)
  if (own.length === 0) return
  const former = (await bookedReturns(db, store.store_id, keyOfPurchase(purchase)))
    .filter(({ result }) => (JSON.parse(result ?? '{}') as ReturnResult).purchaseId === purchase.purchase_id)
    .flatMap(({ body }) => listsOf(JSON.parse(body) as KeptReturn))
  const itemOf = await itemsWith(db, store.tenant, [...listsOf(request), ...former])
  const nameOf = (tag: SaleTag) => (tag.isValid && itemOf({ [tag.kind]: tag.id })?.item_id) || saleTagKey(tag)
  const back = new Set(former.flatMap(tagsOf).map(nameOf))
  const again = own.find((tag) => back.has(nameOf(tag)))
  if (again)
    throw precondition('already_refunded', `the goods with the tag ${again.id} came back before`, { allowedNext: [] })
}

/** The items whose tags a return names. */
async function namedItems(call: Call, store: Row<'store'>, request: KeptReturn): Promise<ReadonlySet<string>> {
  const lists = [request, ...(request.lines ?? [])]
  const itemOf = await itemsWith(call.db, store.tenant, lists)
  const tags = lists.flatMap(tagsOf).filter((tag) => tag.isValid)
  return new Set(tags.flatMap(({ kind, id }) => itemOf({ [kind]: id })?.item_id ?? []))
}
