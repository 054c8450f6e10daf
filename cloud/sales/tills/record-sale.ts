import { newId } from '../../../policy/ids.ts'
import {
  lineIdOf,
  OPEN_SALE_MS,
  OPEN_SALES_LIMIT,
  hourOfSale,
  SALE_AGE_MS,
  SALE_AHEAD_MS,
  saleCentOf,
  saleContent,
  saleKeyOf,
  saleTagKey,
  sellsGoods,
  tagsOf,
  type SaleTag,
  type KeptSale,
} from '../../../policy/till-sale.ts'
import { RIGHT_CLASSES, type ItemStatus } from '../../../policy/vocabulary.ts'
import { precondition } from '../../platform/foundation/failure.ts'
import { definedFields } from '../../platform/operations/fields.ts'
import type { Call } from '../../platform/operations/operation.ts'
import { groupBy, type Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { isSold } from '../../../policy/item-status.ts'
import { passUnitOf, returnUnits } from '../../protection/leases/leases.ts'
import { storeGone, type UnitKey } from '../../protection/rights/rights.ts'
import { itemsWith, readItems } from '../../protection/items/item-queries.ts'
import { notifyGates } from '../../protection/items/item-sequence.ts'
import { raiseException } from '../../protection/records/exceptions.ts'
import { policyOf } from '../../platform/stores/parsed-policy.ts'
import { findCard } from '../../shop/loyalty/card-operations.ts'
import { findPurchaseOfReceipt, freeIdentity, insertPurchase, updatePurchase } from '../../shop/purchases/queries.ts'
import { valueOf } from '../../shop/purchases/line-value.ts'
import { completePurchase } from '../checkout/complete-purchase.ts'
import { raiseDoubts, warningOf, type Doubt, type Warning } from './doubts.ts'
import {
  SALES_KEPT_MS,
  addToHour,
  countOpenSales,
  findSale,
  forgetCodes,
  insertCodes,
  keyOfPurchase,
  piecesOfReport,
  renameReports,
  revocationOf,
  saveReports,
  saveSale,
} from './queries.ts'
import { holdRows, knewOf, rowsOfSale, type Recorded, type SaleRows } from './sale-lines.ts'
import { takeStock } from './move-stock.ts'
import { tellOfHeldSale } from './revoke-till.ts'
import { conflictKey, isPastVoid, voidRecorded, voidSaleOf } from './void-sale.ts'
import { applyWaiting, returnsAwaiting } from './return-goods.ts'
import { takeExchanged } from './returned-tags.ts'
import { EXCHANGE_KEY, reportSale } from './piece-reports.ts'
import { nameUnits, settlePieces } from './settle-pieces.ts'

/**
 *   (nothing) ──▶ open ──▶ paid ──▶ void
 *       └──────────────────▲    └─ void-sale.ts
 *
 * Recording of till sales (ADR till-sales). The money is taken, so a well-formed sale is always recorded. What is
 * doubtful becomes a warning and an exception, and that tag keeps its status.
 */

/** Who bought. An agent does not take this, because it keeps nothing about customers. */
export interface CustomerOfSale {
  userId?: string | undefined
  loyaltyCard?: string | undefined
}

/** Answer about one sale. */
export interface SaleResult {
  saleId: string
  purchaseId?: string
  receiptToken?: string
  items: { lineId: string; tag: string; itemStatus?: ItemStatus }[]
  warnings: Warning[]
}

/** Records a sale, or finds it recorded. Throws 409 if another sale has its names. */
export async function recordSale(
  call: Call,
  store: Row<'store'>,
  sale: KeptSale & CustomerOfSale,
  recorded: Recorded,
): Promise<{ isNew: boolean; result: SaleResult }> {
  const key = saleKeyOf(store.store_id, sale)
  const content = saleContent(sale)
  const former = await findSale(call.db, key)
  const isReused =
    former !== undefined &&
    former.content !== content &&
    (isPastVoid(call, former, soldAt(sale, recorded)) ||
      (former.purchase_id !== null && soldAt(sale, recorded) >= former.stored_ms + SALES_KEPT_MS))
  const known = isReused ? undefined : former
  const { state = 'paid', version = 1 } = sale
  if (known?.purchase_id || (known?.state === 'open' && state === 'open' && version <= known.version)) {
    // An earlier state of a paid sale is late, not in conflict.
    if (known.content !== content && state !== 'open') throw await conflictOf(call, store, known, sale, recorded)
    if (known.content !== content && known.state === 'open')
      throw precondition('sale_version', `version ${known.version} of this sale has other lines: send a higher version`)
    // An agent stored it before another copy reached the cloud: returns since then are newer.
    const isEarlier = recorded.storedMs < known.stored_ms
    const first = isEarlier ? { ...known, stored_ms: recorded.storedMs } : known
    if (isEarlier) await saveSale(call.db, first)
    if (isEarlier) await reportEarlier(call, store, sale, key, recorded)
    if (isEarlier) await tellOfHeldSale(call, store, known, recorded.storedMs)
    if (state === 'void' && known.state === 'paid' && !recorded.withoutReturns)
      await voidRecorded(call, store, first, { voidedMs: recorded.storedMs })
    return { isNew: false, result: resultOf(sale, known) }
  }
  // A late copy of an open sale that was voided changes nothing, and a void sells nothing.
  if (state === 'open' && known?.state === 'void') return { isNew: false, result: resultOf(sale, known) }
  if (state === 'void') {
    const isNew = known?.state !== 'void' && (known?.state === 'open' || !recorded.withoutReturns)
    const by = { storedMs: recorded.storedMs, agentId: recorded.agent?.agentId }
    if (isNew) await voidSaleOf(call, store, sale, by)
    return { isNew, result: { saleId: sale.saleId, items: [], warnings: [] } }
  }
  if (state === 'open') return openSale(call, store, sale, { key, content, known, recorded })
  const incoming = { key, content, known, recorded }
  if (!(await freeNumber(call.db, key, former, soldAt(sale, recorded))))
    throw await conflictOf(call, store, saleRow(store, sale, incoming), sale, recorded)
  const result = await bookSale(call, store, sale, incoming)
  return { isNew: true, result }
}

/** Time of a sale, ms. A till that is restored from a backup may send an old one again as if it were new. */
function soldAt({ occurredAt }: KeptSale, { storedMs }: Recorded): number {
  return Math.min(storedMs, Date.parse(occurredAt))
}

/**
 * Ends that a number names a former sale, because its till uses it again 90 days after that sale or later. Returns false
 * if the former sale is younger. A sale that was deleted counts from when it reached the cloud.
 */
async function freeNumber(db: Db, key: string, former: Row<'till_sale'> | undefined, atMs: number): Promise<boolean> {
  const purchase = await findPurchaseOfReceipt(db, key)
  if (!purchase) return true
  const soldMs = former?.purchase_id ? former.stored_ms : purchase.created_ms
  if (atMs < soldMs + SALES_KEPT_MS) return false
  await freeIdentity(db, purchase.purchase_id)
  await forgetCodes(db, key, atMs - SALES_KEPT_MS)
  await renameReports(db, key, keyOfPurchase({ ...purchase, cti: null }))
  return true
}

function resultOf({ saleId }: KeptSale, { result }: Row<'till_sale'>): SaleResult {
  return result === null ? { saleId, items: [], warnings: [] } : (JSON.parse(result) as SaleResult)
}

/**
 * Two sales with the same names: the first gives rights. If the second came from an agent that had acknowledged it while
 * it was apart, people must look at it.
 */
async function conflictOf(
  call: Call,
  store: Row<'store'>,
  known: Row<'till_sale'>,
  sale: KeptSale,
  { agent }: Recorded,
): Promise<Error> {
  if (agent)
    await raiseException(
      { db: call.db, tenant: store.tenant, platform: call.services.platform, nowMs: call.nowMs },
      {
        storeId: store.store_id,
        kind: 'sale_conflict',
        subject: conflictKey(known.sale_key, agent.agentId),
        purchaseId: known.purchase_id ?? undefined,
        detail: `two tills or agents recorded different sales with the number ${known.sale_id}; the first one counts, and the other one, of ${saleCentOf(sale)} cents, is not booked`,
      },
    )
  return precondition(
    'sale_conflict',
    'another sale with other lines has this number: send tillId and series that differ',
  )
}

interface Incoming {
  readonly key: string
  readonly content: string
  readonly known: Row<'till_sale'> | undefined
  readonly recorded: Recorded
}

function saleRow(store: Row<'store'>, sale: KeptSale, { key, content, known, recorded }: Incoming): Row<'till_sale'> {
  return {
    sale_key: key,
    tenant: store.tenant,
    store_id: store.store_id,
    till_id: sale.tillId ?? null,
    series: sale.series ?? null,
    sale_id: sale.saleId,
    state: sale.state ?? 'paid',
    version: Math.max(sale.version ?? 1, known?.version ?? 1),
    content,
    purchase_id: null,
    result: null,
    agent_id: recorded.agent?.agentId ?? null,
    stored_ms: recorded.storedMs,
    due_ms: null,
  }
}

/** Notes that pieces were sold earlier than the first copy of their sale tells, by somebody who knew something else. */
async function reportEarlier(
  call: Call,
  store: Row<'store'>,
  sale: KeptSale,
  key: string,
  { agent, storedMs }: Recorded,
): Promise<void> {
  const [reports, backs] = [await piecesOfReport(call.db, key), await piecesOfReport(call.db, EXCHANGE_KEY + key)]
  const itemOf = await itemsWith(call.db, store.tenant, sale.lines)
  const tags = groupBy(sale.lines.flatMap(tagsOf), ({ kind, id, isValid }) =>
    isValid ? (itemOf({ [kind]: id })?.item_id ?? '') : '',
  )
  const itemIds = reports.map((report) => report.item_id)
  const items = await readItems(call.db, itemIds)
  const knew = knewOf(call, agent)
  const by = { at_ms: storedMs, agent_id: agent?.agentId ?? null }
  await saveReports(call.db, [
    ...reports.flatMap((report) => {
      const item = items.get(report.item_id)
      const what = item && knew(item, tags.get(report.item_id) ?? [])
      return what ? [{ ...report, ...by, is_again: what.isAgain ? 1 : 0 }] : []
    }),
    ...backs.map((back) => ({ ...back, ...by })),
  ])
  await settlePieces(call, store, [...itemIds, ...backs.map((back) => back.item_id)])
}

/** Notes an open sale: it releases nothing, and ends after 30 minutes. */
async function openSale(
  call: Call,
  store: Row<'store'>,
  sale: KeptSale,
  incoming: Incoming,
): Promise<{ isNew: boolean; result: SaleResult }> {
  const { db, nowMs } = call
  if (!incoming.known && (await countOpenSales(db, store.store_id, sale.tillId ?? null, nowMs)) >= OPEN_SALES_LIMIT)
    throw precondition('too_many_open_sales', `this till has ${OPEN_SALES_LIMIT} open sales: pay or void them first`)
  await saveSale(db, { ...saleRow(store, sale, incoming), due_ms: nowMs + OPEN_SALE_MS })
  return { isNew: true, result: { saleId: sale.saleId, items: [], warnings: [] } }
}

const aboutSale = ({ saleId, tillId }: KeptSale) => `sale ${saleId}${tillId === undefined ? '' : ` of till ${tillId}`}`

/** What is doubtful about a sale as a whole. */
function doubtsAboutWhole(
  sale: KeptSale,
  { storedMs, isOld, isVoid }: { storedMs: number; isOld: boolean; isVoid: boolean },
): Doubt[] {
  const subject = aboutSale(sale)
  const codes: [boolean, Doubt['code']][] = [
    [Date.parse(sale.occurredAt) > storedMs + SALE_AHEAD_MS, 'sale_in_future'],
    [isOld, 'sale_too_old'],
    [sale.totalCent !== undefined && sale.totalCent !== saleCentOf(sale), 'sale_total_differs'],
    [isVoid, 'sale_is_void'],
  ]
  return codes.flatMap(([isSo, code]) => (isSo ? [{ code, subject }] : []))
}

async function bookSale(
  call: Call,
  store: Row<'store'>,
  sale: KeptSale & CustomerOfSale,
  incoming: Incoming,
): Promise<SaleResult> {
  const { db, nowMs, services } = call
  const { storedMs, agent } = incoming.recorded
  const purchaseId = newId('pur', services.platform)
  const occurredMs = Date.parse(sale.occurredAt)
  const about = aboutSale(sale)
  const isOld = storedMs - occurredMs > SALE_AGE_MS || nowMs - storedMs > SALE_AGE_MS
  const isVoid = incoming.known?.state === 'void'
  const doubts = doubtsAboutWhole(sale, { storedMs, isOld, isVoid })
  const rows = await rowsOfSale(call, store, sale, purchaseId, incoming.recorded)
  const stop = await whyHeld(call, store, sale, storedMs, rows)
  if (stop) {
    doubts.push(stop)
    holdRows(rows)
  }
  doubts.push(...rows.doubts)
  const purchase = purchaseRow(store, sale, rows, { purchaseId, nowMs, userId: await customerOf(call, store, sale) })
  await insertPurchase(db, purchase, rows.lines, rows.units)
  let completed = await completePurchase(call, purchase, store, isOld ? nowMs - SALE_AGE_MS : storedMs)
  if (isOld) completed = await updatePurchase(db, completed, { status: 'UNLOADED' })
  // An agent may have released goods of a sale that only arrives late.
  if (storedMs - occurredMs > SALE_AGE_MS) await storeGone(db, rightsOfRows(rows), `sale_too_old/${purchaseId}`)
  const isSale = sellsGoods(sale)
  // Goods that must stay may leave with none of the sale's receipts: staff look.
  const isHeld = rows.doubts.some(({ code }) => code === 'sale_of_held_item')
  const whyShut = stop?.code ?? (!isSale ? 'nothing_sold' : isHeld ? 'sale_of_held_item' : undefined)
  if (whyShut) await returnUnits(call, completed, [passUnitOf(completed)], `${whyShut}/${purchaseId}`)
  await takeStock(call, store, completed, rows.lines)
  const returned = new Map(rows.returned.flatMap(({ item }) => (item ? [[item.item_id, item]] : [])))
  const isAllowed = incoming.recorded.withoutReturns !== true
  const inStore = isAllowed ? [...returned.values()].filter((item) => item.store_id === store.store_id) : []
  const resold = rows.pieces.flatMap(({ item, isAgain }) => (isAgain ? [item] : []))
  await paidAtUntag(call, store, resold, about)
  const others = await paidAtUntag(call, store, inStore, about)
  for (const { item, lineId, tag } of rows.returned)
    if (others.has(item?.purchase_id ?? ''))
      doubts.push({ code: 'not_sold_at_a_till', subject: about, lineId, tag: tag.id })
  await reportSale(call, store, { key: incoming.key, purchaseId, agentId: agent?.agentId }, rows.pieces)
  await nameUnits(call, purchaseId, rows.pieces)
  const backMs = incoming.recorded.returnedMs ?? storedMs
  const by = { key: incoming.key, storedMs: backMs, agentId: agent?.agentId, about }
  await takeExchanged(call, store, by, inStore, others)
  const itemIds = [...rows.pieces.map(({ item }) => item), ...inStore].map((item) => item.item_id)
  const row = { ...saleRow(store, sale, incoming), purchase_id: purchaseId }
  await catchUp(call, store, row, { incoming, sale, itemIds })
  if (rows.returned.length > 0) notifyGates(call, store.store_id)
  await raiseDoubts(call, store.store_id, store.tenant, doubts, purchaseId)
  await insertCodes(
    db,
    sale.codeHashes.map((code) => ({
      store_id: store.store_id,
      code,
      sale_key: incoming.key,
      stored_ms: storedMs,
    })),
  )
  const result: SaleResult = {
    saleId: sale.saleId,
    purchaseId,
    ...definedFields({ receiptToken: isSale ? completed.receipt_token : null }),
    items: await itemsOf(call, store, sale, rows),
    warnings: doubts.map(warningOf),
  }
  await saveSale(db, { ...row, ...(isVoid && { state: 'void' }), result: JSON.stringify(result) })
  return result
}

/**
 * Applies to a new sale what was reported of it before it was here, in the order of time: the returns that name it, its
 * void, and its pieces that came back by their tags or with another sale before. What came back after its void belongs
 * to their next sale.
 */
async function catchUp(
  call: Call,
  store: Row<'store'>,
  row: Row<'till_sale'> & { purchase_id: string },
  { incoming, sale, itemIds }: { incoming: Incoming; sale: KeptSale; itemIds: readonly string[] },
): Promise<void> {
  await saveSale(call.db, row)
  const waiting = await returnsAwaiting(call, store, incoming.key, sale)
  const voidedMs = incoming.known?.state === 'void' ? incoming.known.stored_ms : Number.POSITIVE_INFINITY
  // Once, and not before each return: a sale has up to 2,000 pieces.
  const [first] = waiting
  if (first) await settlePieces(call, store, itemIds, { saleKey: incoming.key, untilMs: first.stored_ms })
  const apply = async (returned: Row<'till_return'>) => applyWaiting(call, store, row.purchase_id, returned)
  for (const returned of waiting.filter((each) => each.stored_ms < voidedMs)) await apply(returned)
  if (voidedMs < Number.POSITIVE_INFINITY) await voidRecorded(call, store, row, { voidedMs })
  for (const returned of waiting.filter((each) => each.stored_ms >= voidedMs)) await apply(returned)
  await settlePieces(call, store, itemIds)
}

function rightsOfRows({ units }: SaleRows): UnitKey[] {
  return units.flatMap(({ line_id: lineId, unit_no: unitNo, purchase_id: purchaseId }) =>
    RIGHT_CLASSES.map((rightClass) => ({ lineId, unitNo, rightClass, purchaseId })),
  )
}

/** Why a sale gives no rights: its till is revoked, or sold more than the policy allows. */
async function whyHeld(
  call: Call,
  store: Row<'store'>,
  sale: KeptSale,
  storedMs: number,
  rows: SaleRows,
): Promise<Doubt | undefined> {
  const { db } = call
  const revoked = await revocationOf(db, store.store_id, sale.tillId)
  // The till itself writes `occurredAt`.
  if (revoked && storedMs >= revoked.since_ms)
    return { code: 'sale_of_revoked_till', subject: `till ${sale.tillId ?? ''}` }
  const { salesPerHour, valuePerHour } = policyOf(store).tillSales
  const sums = await addToHour(db, {
    store_id: store.store_id,
    till_id: sale.tillId ?? '',
    hour: hourOfSale(sale, storedMs),
    sales: 1,
    value_cent: Math.max(0, rows.valueCent),
  })
  if (sums.sales <= salesPerHour && sums.value_cent <= valuePerHour * 100) return undefined
  return {
    code: 'sale_over_limit',
    subject: sale.tillId === undefined ? 'a till without tillId' : `till ${sale.tillId}`,
  }
}

async function customerOf(
  { db }: Call,
  store: Row<'store'>,
  { userId, loyaltyCard }: CustomerOfSale,
): Promise<string | null> {
  if (userId !== undefined || loyaltyCard === undefined) return userId ?? null
  const card = await findCard(db, loyaltyCard)
  return card?.store.tenant === store.tenant ? card.member.user_id : null
}

function purchaseRow(
  store: Row<'store'>,
  sale: KeptSale,
  { lines }: SaleRows,
  made: { purchaseId: string; nowMs: number; userId: string | null },
): Row<'purchase'> {
  const { saleId, tillId, series } = sale
  return {
    purchase_id: made.purchaseId,
    tenant: store.tenant,
    store_id: store.store_id,
    session_id: null,
    user_id: made.userId,
    checkout_session_id: null,
    status: 'PENDING_PAYMENT',
    currency: 'EUR',
    total_cent: lines.reduce((sum, line) => sum + line.price_cent * line.quantity, 0),
    value_cent: lines.reduce((sum, line) => sum + Math.max(0, valueOf(line)) * line.quantity, 0),
    security_tag_mode: store.security_tag_mode,
    security_tag_status: store.security_tag_mode === 'none' ? null : 'pending',
    price_origin: 'merchant',
    cti: null,
    receipt_token: null,
    receipt_exp: null,
    cancel_reason: null,
    refund_status: null,
    deny_seq: null,
    approval: null,
    approval_reason: null,
    approved_by: null,
    payment_by_ms: null,
    created_ms: made.nowMs,
    completed_ms: null,
    completed_position: null,
    till: JSON.stringify({ saleId, ...(tillId !== undefined && { tillId }), ...(series !== undefined && { series }) }),
    fiscal: sale.fiscal ?? null,
    rev: 1,
  }
}

/** The tags of a sale with the status of their items after it. */
async function itemsOf(
  { db }: Call,
  store: Row<'store'>,
  sale: KeptSale,
  { tags, returned }: SaleRows,
): Promise<SaleResult['items']> {
  const nameOf = (lineId: string, tag: SaleTag) => `${lineId} ${saleTagKey(tag)}`
  const known = new Map([...returned, ...tags].map((each) => [nameOf(each.lineId, each.tag), each.item]))
  const here = [...known.values()].flatMap((item) => (item?.store_id === store.store_id ? [item.item_id] : []))
  const now = await readItems(db, here)
  return sale.lines.flatMap((line, i) =>
    tagsOf(line).map((tag) => {
      const lineId = lineIdOf(line, i)
      const itemStatus = now.get(known.get(nameOf(lineId, tag))?.item_id ?? '')?.item_status as ItemStatus | undefined
      return { lineId, tag: tag.id, ...(itemStatus !== undefined && { itemStatus }) }
    }),
  )
}

/** The purchases of these items whose money untag took. The till may have paid it back, so staff look. */
async function paidAtUntag(
  { db, nowMs, services: { platform } }: Call,
  { store_id: storeId, tenant }: Row<'store'>,
  items: readonly Row<'protected_item'>[],
  about: string,
): Promise<ReadonlySet<string>> {
  const ids = items.flatMap(({ purchase_id: id, item_status: status }) => (id !== null && isSold(status) ? [id] : []))
  const others = new Set(
    ids.length === 0
      ? []
      : (
          await db
            .selectFrom('purchase')
            .select('purchase_id')
            .where('purchase_id', 'in', ids)
            .where('till', 'is', null)
            .execute()
        ).map((row) => row.purchase_id),
  )
  for (const purchaseId of others)
    await raiseException(
      { db, tenant, platform, nowMs },
      {
        storeId,
        kind: 'return_unclear',
        subject: `${about}/${purchaseId}`,
        purchaseId,
        detail: `goods of this purchase came back with ${about}, but untag took their money: refund them with refundPayment, or ask the till`,
      },
    )
  return others
}
