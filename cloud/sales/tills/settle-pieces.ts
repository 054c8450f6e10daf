import { isSold } from '../../../policy/item-status.ts'
import type { KeptReturn, SaleName } from '../../../policy/till-sale.ts'
import type { Call } from '../../platform/operations/operation.ts'
import { groupBy } from '../../platform/persistence/database.ts'
import { insertChunks } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { isPaid } from '../../protection/authorize/item-facts.ts'
import { readItems } from '../../protection/items/item-queries.ts'
import { notifyGates } from '../../protection/items/item-sequence.ts'
import { moveBack, PURCHASES_LIMIT } from '../../protection/items/move-by-staff.ts'
import { raiseException } from '../../protection/records/exceptions.ts'
import { piecesLeft } from '../../../policy/decimals.ts'
import { amountsOfPieces, paidByLine, soldPieces } from '../../shop/purchases/line-value.ts'
import { findPurchase, findPurchaseOfReceipt, readUnits, wholePurchase } from '../../shop/purchases/queries.ts'
import { insertTillRefund, manyRefunds, returnedPieces } from '../../shop/purchases/refunds.ts'
import { bookRefund, emitRefunded, unbookRefund } from '../checkout/book-refund.ts'
import { returnItems } from '../payments/refund-payment.ts'
import { bindUnits } from '../checkout/complete-purchase.ts'
import { bindPieces } from './bind-pieces.ts'
import { endPieces } from './end-pieces.ts'
import { giveStockBack } from './move-stock.ts'
import { MAY_BE_SOLD, OTHERS, type PieceHistory } from './piece-history.ts'
import { EXCHANGE_KEY, historyOfReports, movesByOthers, type NamedPiece } from './piece-reports.ts'
import { allPieceReports, endWaiting, isReturn, piecesOfReport, returnsWith, saveReports } from './queries.ts'
import { refundsOf, updateRefund } from '../../shop/purchases/refund-queries.ts'

type Report = Row<'piece_report'>
type Item = Row<'protected_item'>

/** Reason of the refund of goods that came back with another sale. */
async function reasonOfExchange({ db }: Call, reportKey: string): Promise<string> {
  const purchase = await findPurchaseOfReceipt(db, reportKey.slice(EXCHANGE_KEY.length))
  const { saleId } = JSON.parse(purchase?.till ?? '{"saleId":""}') as SaleName
  return `returned with sale ${saleId}`
}

/**
 * Undoes that goods came back with this sale, because it becomes void: they belong to their former sales again. Returns
 * their items.
 */
export async function undoExchange(call: Call, store: Row<'store'>, sale: Row<'till_sale'>): Promise<string[]> {
  const backs = await piecesOfReport(call.db, EXCHANGE_KEY + sale.sale_key)
  if (backs.length === 0) return []
  const itemIds = backs.map((back) => back.item_id)
  const { reports, voided } = await allPieceReports(call.db, itemIds)
  const others = await movesByOthers(call, store, reports)
  const former = [...reports].flatMap(([itemId, ofItem]) => {
    const { returns } = historyOfReports(ofItem, others.get(itemId), { voided: voided.get(itemId) })
    return ofItem.filter((report) => returns.get(report.report_key) === EXCHANGE_KEY + sale.sale_key)
  })
  await call.db
    .deleteFrom('piece_report')
    .where('report_key', '=', EXCHANGE_KEY + sale.sale_key)
    .execute()
  await saveReports(
    call.db,
    former.map((report) => ({ ...report, is_booked: 0 })),
  )
  const reason = await reasonOfExchange(call, EXCHANGE_KEY + sale.sale_key)
  for (const purchaseId of new Set(former.flatMap((report) => report.purchase_id ?? []))) {
    const purchase = await findPurchase(call.db, store.tenant, purchaseId)
    for (const refund of await refundsOf(call.db, purchaseId)) {
      if (!purchase || refund.amount_cent !== 0 || refund.reason !== reason) continue
      const undone = await updateRefund(call.db, refund, { state: 'failed' })
      if (undone) await unbookRefund(call, purchase, undone)
    }
  }
  return itemIds
}

/** A return that was booked on a sale. */
interface Booked {
  readonly returnKey: string
  readonly purchaseId: string
  readonly amountCent: number
}

/**
 * Brings pieces into the state that the reports of tills tell, whatever order they arrived in: books each return on a
 * sale, and makes each piece paid or not. What others did with a piece since then stays. `until`: of this sale, only
 * what came back before that time is booked: a return that names it is next.
 */
export async function settlePieces(
  call: Call,
  store: Row<'store'>,
  itemIds: readonly string[],
  until?: Until,
): Promise<readonly Booked[]> {
  const { reports, voided } = await allPieceReports(call.db, itemIds)
  const others = await movesByOthers(call, store, reports)
  const historyOfItem = (id: string, ofItem: readonly Report[]) =>
    historyOfReports(ofItem, others.get(id), { voided: voided.get(id) })
  const pieces = new Map([...reports].map(([id, ofItem]) => [id, historyOfItem(id, ofItem)]))
  const booked = await bookReturns(call, store, reports, pieces, until)
  await moveItems(call, store, reports, pieces)
  return booked
}

/** A time of a sale, ms. */
interface Until {
  readonly saleKey: string
  readonly untilMs: number
}

/** Sales to which pieces of one report are bound, so that a transaction stays short. */
const SALES_AT_ONCE = 100
/** Returns of one purchase that are booked at once. More are one refund, so that no purchase has too many. */
const RETURNS_AT_ONCE = 20

/** A piece whose return is booked now. */
interface Due {
  readonly sale: Report
  readonly back: Report
  /** The return that ended the sale. It differs from `back` if it was booked on another sale before this one was here. */
  readonly ownKey: string
}

async function bookReturns(
  call: Call,
  store: Row<'store'>,
  reports: ReadonlyMap<string, readonly Report[]>,
  pieces: ReadonlyMap<string, PieceHistory>,
  until: Until | undefined,
): Promise<readonly Booked[]> {
  const all = [...reports].flatMap(([itemId, ofItem]) => dueOf(ofItem, pieces.get(itemId)?.returns ?? new Map()))
  const due = all.filter(
    ({ sale, back }) => until === undefined || sale.report_key !== until.saleKey || back.at_ms < until.untilMs,
  )
  const paired = new Set(due.map(({ sale }) => sale))
  const stray = [...reports].flatMap(([itemId, ofItem]) =>
    strayOf(ofItem, pieces.get(itemId)?.returns ?? new Map()).filter((sale) => !paired.has(sale)),
  )
  await raiseUnclear(call, store, [...stray, ...due.filter(isSwapped).map(({ sale }) => sale)])
  if (due.length === 0) return []
  await saveReports(
    call.db,
    due.flatMap(({ sale, back }) => [
      { ...sale, is_booked: 1 },
      { ...back, is_booked: 1 },
    ]),
  )
  const returnKeys = [...new Set(due.map(({ back }) => back.report_key))]
  await endWaiting(call.db, returnKeys)
  const requests = await returnsWith(call.db, returnKeys)
  const booked: Booked[] = []
  const reasons = new Map<string, string>()
  const byPurchase = [...groupBy(due, ({ sale }) => sale.purchase_id ?? '')]
  for (const [n, [purchaseId, ofPurchase]] of byPurchase.entries()) {
    // Another sale has credited the money of exchanged goods: only a note is missing.
    if (n >= PURCHASES_LIMIT && !ofPurchase.some(({ back }) => requests.has(back.report_key))) continue
    const byReturn = [...groupBy(ofPurchase, ({ back }) => back.report_key).values()]
    for (const group of byReturn.length > RETURNS_AT_ONCE ? [ofPurchase] : byReturn) {
      const returnKey = group[0]?.back.report_key ?? ''
      const request = requests.get(returnKey)
      if (!request && !reasons.has(returnKey)) reasons.set(returnKey, await reasonOfExchange(call, returnKey))
      const reason = request?.reason ?? (request ? `return ${request.returnId}` : (reasons.get(returnKey) ?? ''))
      const amountCent = await bookOne(call, store, purchaseId, group, { request, reason })
      if (amountCent !== undefined) booked.push({ returnKey, purchaseId, amountCent })
    }
  }
  return booked
}

/** True if an exchange stands for a return with money, or the other way round. Two returns with money may be swapped. */
function isSwapped({ back, ownKey }: Due): boolean {
  return ownKey.startsWith(EXCHANGE_KEY) !== back.report_key.startsWith(EXCHANGE_KEY)
}

/** The sales that are not booked as returned, although the return that ended them is booked: on another sale. */
function strayOf(reports: readonly Report[], returns: PieceHistory['returns']): Report[] {
  const booked = new Set(reports.filter((report) => report.is_booked === 1).map((report) => report.report_key))
  return reports.filter((sale) => sale.is_booked === 0 && booked.has(returns.get(sale.report_key) ?? ''))
}

/** Sales with such an exception at once, so that a transaction stays short. */
const UNCLEAR_AT_ONCE = 10

/** What is booked stays, so people must look at the amounts of these sales. */
async function raiseUnclear(call: Call, store: Row<'store'>, sales: readonly Report[]): Promise<void> {
  const byPurchase = new Map(sales.map((sale) => [sale.purchase_id, sale]))
  for (const sale of [...byPurchase.values()].slice(0, UNCLEAR_AT_ONCE))
    await raiseException(
      { db: call.db, tenant: store.tenant, platform: call.services.platform, nowMs: call.nowMs },
      {
        storeId: store.store_id,
        kind: 'return_unclear',
        subject: sale.report_key,
        purchaseId: sale.purchase_id ?? undefined,
        detail:
          'goods of this sale came back, but their return was booked on an earlier sale before this one was known: check the amounts of both',
      },
    )
}

/** The sales after which a piece came back, of which no return is booked, each with a return that is not booked. */
function dueOf(reports: readonly Report[], returns: PieceHistory['returns']): Due[] {
  const matched = new Set(returns.values())
  const backs = reports.filter((report) => matched.has(report.report_key) && report.is_booked === 0)
  const own = (sale: Report) => backs.find((back) => back.report_key === returns.get(sale.report_key))
  const sales = reports.filter((sale) => returns.get(sale.report_key) !== undefined && sale.is_booked === 0)
  const due: Due[] = []
  for (const sale of [...sales.filter(own), ...sales.filter((each) => !own(each))]) {
    const i = backs.indexOf(own(sale) ?? (backs[0] as Report))
    const [back] = i < 0 ? [] : backs.splice(i, 1)
    if (back) due.push({ sale, back, ownKey: returns.get(sale.report_key) ?? back.report_key })
  }
  return due
}

/** Books a return of pieces of one sale. Returns what was paid for them, cents; undefined: nothing is left of them. */
async function bookOne(
  call: Call,
  store: Row<'store'>,
  purchaseId: string,
  due: readonly Due[],
  { request, reason }: { request: KeptReturn | undefined; reason: string },
): Promise<number | undefined> {
  const purchase = await findPurchase(call.db, store.tenant, purchaseId)
  if (!purchase || !isPaid(purchase)) return undefined
  const whole = await wholePurchase(call, purchase)
  const many = manyRefunds(whole.refunds)
  if (many !== undefined) {
    await raiseException(
      { db: call.db, tenant: store.tenant, platform: call.services.platform, nowMs: call.nowMs },
      {
        storeId: store.store_id,
        kind: 'return_unclear',
        subject: due[0]?.back.report_key ?? purchaseId,
        purchaseId,
        detail: `goods came back, but their sale has ${many}`,
      },
    )
    return undefined
  }
  const gone = returnedPieces(whole.refunds)
  const units = await readUnits(call.db, purchaseId)
  const pieces = [...groupBy(due, ({ sale }) => sale.line_id ?? '')].flatMap(([itemLineId, ofLine]) => {
    const line = whole.lines.find((each) => each.line_id === itemLineId)
    const left = line ? piecesLeft(soldPieces(line), gone.get(itemLineId)?.quantity) : 0
    const here = units.filter(
      (unit) => unit.line_id === itemLineId && !gone.get(itemLineId)?.unitNos.includes(unit.unit_no),
    )
    const chosen: number[] = []
    for (const { sale } of ofLine) {
      const own = here.find((unit) => unit.bound === 1 && unit.item_id === sale.item_id)
      const unit = own ?? here.find((each) => each.bound === 0 && !chosen.includes(each.unit_no))
      if (unit) chosen.push(unit.unit_no)
    }
    const quantity = Math.min(left, ofLine.length)
    return quantity <= 0
      ? []
      : [{ itemLineId, quantity, unitNos: chosen.slice(0, Math.ceil(quantity)).sort((a, b) => a - b) }]
  })
  if (pieces.length === 0) return undefined
  // A sale that takes goods back has credited their money itself.
  const amounts = request ? amountsOfPieces(pieces, whole.lines, paidByLine(whole.lines), gone) : []
  const amountCent = amounts.reduce((sum, { cent }) => sum + cent, 0)
  const reportedMs = Math.max(...due.map(({ back }) => back.at_ms))
  const refund = await insertTillRefund(call, { purchase, amountCent, lines: pieces, reason })
  // `moveItems` returns exchanged goods of many sales with few statements.
  const items = request
    ? []
    : [
        ...(
          await readItems(
            call.db,
            due.map(({ sale }) => sale.item_id),
          )
        ).values(),
      ]
  const areHere = items.every((item) => item.purchase_id === purchaseId)
  if (request || !areHere) await returnItems(call, purchase, pieces, refund.refund_id, { reportedMs })
  await endPieces(call, store, purchase)
  if (request?.resellable === true) await giveStockBack(call, store, whole.lines, pieces)
  await bookRefund(call, purchase, refund)
  if (request) emitRefunded(call, refund, undefined)
  call.changed(purchaseId)
  return amountCent
}

/**
 * Notes at the units of a sale which tags it named, although the pieces belong to others now: a return may name the sale
 * and the tag.
 */
export async function nameUnits({ db }: Call, purchaseId: string, pieces: readonly NamedPiece[]): Promise<void> {
  const units = await readUnits(db, purchaseId)
  const named = new Set(units.flatMap((unit) => (unit.bound === 1 ? (unit.item_id ?? []) : [])))
  const free = groupBy(
    units.filter((unit) => unit.bound === 0),
    (unit) => unit.line_id,
  )
  const rows = pieces.flatMap(({ item, lineId }) => {
    const unit = named.has(item.item_id) ? undefined : free.get(lineId)?.shift()
    return unit ? [{ ...unit, item_id: item.item_id, bound: 1 }] : []
  })
  for (const chunk of insertChunks(rows)) await bindUnits(db, chunk)
}

/** Makes pieces paid, or not, if the reports say so and no staff, import or purchase in untag moved them since. */
async function moveItems(
  call: Call,
  store: Row<'store'>,
  reports: ReadonlyMap<string, readonly Report[]>,
  pieces: ReadonlyMap<string, PieceHistory>,
): Promise<void> {
  const items = await readItems(call.db, reports.keys())
  const due = [...items.values()].flatMap((item) => {
    const history = pieces.get(item.item_id)
    const isHere = history !== undefined && item.store_id === store.store_id
    const move = isHere ? moveOf(item, reports.get(item.item_id) ?? [], history) : undefined
    return move ? [{ item, ...move }] : []
  })
  for (const [reportedMs, back] of groupBy(due, ({ by }) => by.at_ms)) {
    const sold = back.filter(({ item }) => isSold(item.item_status)).map(({ item }) => item)
    const returned = await moveBack(call, sold, 'returned', { reportedMs })
    const onSale = back.filter(({ to, by }) => to !== undefined || by.resellable === 1)
    await moveBack(
      call,
      onSale.flatMap(({ item }) => {
        const now = returned.get(item.item_id) ?? item
        return now.item_status === 'sellable' ? [] : [now]
      }),
      'sellable',
      { reportedMs },
    )
  }
  const bySale = [...groupBy(due, ({ to }) => to?.purchase_id ?? '')].filter(([purchaseId]) => purchaseId !== '')
  // The goods of further sales alarm, until something is reported about them.
  for (const [purchaseId, ofSale] of bySale.slice(0, SALES_AT_ONCE)) await bindTo(call, store, purchaseId, ofSale)
  if (due.length > 0) notifyGates(call, store.store_id)
}

/** How a piece must move: `to` a sale, or back into the store. `by`: the report that tells so. */
function moveOf(
  item: Item,
  reports: readonly Report[],
  { owner, isBack, returns }: PieceHistory,
): { by: Report; to: Report | undefined } | undefined {
  const { item_status: status, purchase_id: purchaseId } = item
  const current = reports.find((report) => !isReturn(report) && report.purchase_id === purchaseId)
  if (owner === OTHERS) return undefined
  const to = reports.find((report) => report.report_key === owner)
  if (to) {
    // What untag sold is not in the history.
    const isOver = current ? returns.has(current.report_key) : to.is_again === 1
    const mayBind = isSold(status) ? purchaseId !== to.purchase_id && isOver : MAY_BE_SOLD.has(status)
    return mayBind ? { by: to, to } : undefined
  }
  const [last] = reports.filter(isReturn).sort((a, b) => b.at_ms - a.at_ms)
  if (!last) return undefined
  const isOver = isSold(status) && (isBack || (current !== undefined && returns.has(current.report_key)))
  const mayGoOnSale = last.resellable === 1 && (status === 'returned' || (status === 'cancelled' && isBack))
  return isOver || mayGoOnSale ? { by: last, to: undefined } : undefined
}

async function bindTo(
  call: Call,
  store: Row<'store'>,
  purchaseId: string,
  sold: readonly { item: Item; by: Report }[],
): Promise<void> {
  const purchase = await findPurchase(call.db, store.tenant, purchaseId)
  // A revoked till's sales are on hold.
  if (!purchase || !isPaid(purchase) || purchase.deny_seq !== null) return
  const items = await readItems(
    call.db,
    sold.map(({ item }) => item.item_id),
  )
  const wanted = sold.flatMap(({ item, by }) => {
    const now = items.get(item.item_id)
    return now ? [{ item: now, lineId: by.line_id ?? undefined }] : []
  })
  const left = await bindPieces(call, purchase, wanted, Math.max(...sold.map(({ by }) => by.at_ms)))
  for (const item of left)
    await raiseException(
      { db: call.db, tenant: store.tenant, platform: call.services.platform, nowMs: call.nowMs },
      {
        storeId: store.store_id,
        kind: 'sale_of_more_items',
        subject: item.epc ?? item.tag_uid ?? item.tag_id ?? item.item_id,
        purchaseId,
        detail: 'a sale names more tags than it has pieces',
      },
    )
}
