import { saleKeyOf, type SaleName } from '../../../policy/till-sale.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { findPurchase, readLines, readPurchase, wholePurchase } from '../../shop/purchases/queries.ts'
import { piecesLeft } from '../../../policy/decimals.ts'
import { soldPieces } from '../../shop/purchases/line-value.ts'
import { returnedPieces } from '../../shop/purchases/refunds.ts'
import { giveStockBack } from './move-stock.ts'
import { allRightsOf, isPass } from '../../protection/rights/rights.ts'
import { cancelPurchase } from '../checkout/cancel-purchase.ts'
import { findSale, piecesOfReport, SALES_KEPT_MS, saveSale } from './queries.ts'
import { keepReturnsOf } from './piece-reports.ts'
import { settlePieces, undoExchange } from './settle-pieces.ts'

/** Time after which a void or return without its sale becomes an exception, ms. */
export const WAIT_FOR_SALE_MS = 7 * 86_400_000

/** A piece whose tag was off, or that had left, when its sale was voided. */
interface ReleasedUnit {
  lineId: string
  unit: number
}

export interface VoidResult {
  purchaseId?: string
  /** True if the sale is not here yet: the void applies when it arrives. */
  waiting?: true
  released: ReleasedUnit[]
}

/** Subject of the exception about a sale of this agent that has the number of another one. */
export const conflictKey = (saleKey: string, agentId: string) => `${saleKey}/${agentId}`

/** True if this agent means a sale of its own, which was not booked because the known one has its number. */
export async function meansAnother(
  { db }: Call,
  store: Row<'store'>,
  known: Row<'till_sale'> | undefined,
  agentId: string | undefined,
): Promise<boolean> {
  if (!known || agentId === undefined || agentId === known.agent_id) return false
  const conflict = await db
    .selectFrom('protection_exception')
    .select('exception_id')
    .where('store_id', '=', store.store_id)
    .where('kind', '=', 'sale_conflict')
    .where('subject', '=', conflictKey(known.sale_key, agentId))
    .executeTakeFirst()
  return conflict !== undefined
}

/** True for a void that booked no sale and is about a former use of its number at this time, 90 days later. */
export function isPastVoid({ nowMs }: Call, sale: Row<'till_sale'>, atMs: number): boolean {
  const isVoid = sale.state === 'void' && sale.purchase_id === null
  // An agent whose clock stood may have stored it. Until it is due, it waits for its sale.
  return isVoid && (sale.due_ms ?? 0) <= nowMs && atMs >= sale.stored_ms + SALES_KEPT_MS
}

/** Voids a sale, wherever it was recorded. A void that arrives before its sale waits for it. */
export async function voidSaleOf(
  call: Call,
  store: Row<'store'>,
  name: SaleName,
  { reason, agentId, storedMs }: { reason?: string | undefined; agentId?: string | undefined; storedMs: number },
): Promise<VoidResult> {
  const key = saleKeyOf(store.store_id, name)
  const former = await findSale(call.db, key)
  const known = former && isPastVoid(call, former, storedMs) ? undefined : former
  if (await meansAnother(call, store, known, agentId)) return { released: [] }
  if (known?.purchase_id) return voidRecorded(call, store, known, { reason, voidedMs: storedMs })
  if (known?.state === 'void') return { ...(known.content === null && { waiting: true as const }), released: [] }
  await saveSale(call.db, {
    sale_key: key,
    tenant: store.tenant,
    store_id: store.store_id,
    till_id: name.tillId ?? null,
    series: name.series ?? null,
    sale_id: name.saleId,
    state: 'void',
    version: known?.version ?? 1,
    content: known?.content ?? null,
    purchase_id: null,
    result: null,
    agent_id: agentId ?? null,
    stored_ms: storedMs,
    // A void of an open sale needs no sale any more.
    due_ms: known ? null : call.nowMs + WAIT_FOR_SALE_MS,
  })
  return { ...(!known && { waiting: true as const }), released: [] }
}

/** Voids the till's sale of a purchase, and returns the purchase. */
export async function voidTillPurchase(
  call: Call,
  store: Row<'store'>,
  purchase: Row<'purchase'>,
  reason: string | undefined,
): Promise<Row<'purchase'>> {
  const sale = purchase.cti === null ? undefined : await findSale(call.db, purchase.cti)
  if (!sale || purchase.status === 'CANCELLED') return cancelPurchase(call, purchase, reason)
  await voidRecorded(call, store, sale, { reason, voidedMs: call.nowMs })
  return readPurchase(call.db, purchase.purchase_id)
}

/**
 * Voids a recorded sale: its rights end, its goods alarm, and goods that were released are on hold. `voidedMs`: when a
 * till voided it.
 */
export async function voidRecorded(
  call: Call,
  store: Row<'store'>,
  sale: Row<'till_sale'>,
  { reason, voidedMs }: { reason?: string | undefined; voidedMs: number },
): Promise<VoidResult> {
  const { db } = call
  const purchaseId = sale.purchase_id ?? ''
  const purchase = await findPurchase(db, store.tenant, purchaseId)
  if (!purchase || purchase.status === 'CANCELLED') return { purchaseId, released: [] }
  const released = await releasedUnits(call, purchaseId)
  const { lines, refunds } = await wholePurchase(call, purchase)
  const gone = returnedPieces(refunds)
  await giveStockBack(
    call,
    store,
    lines,
    lines.map((line) => {
      const outside = released.filter(({ lineId }) => lineId === (line.till_line ?? line.line_id)).length
      const left = piecesLeft(soldPieces(line), gone.get(line.line_id)?.quantity)
      return { itemLineId: line.line_id, quantity: Math.max(0, left - outside) }
    }),
  )
  const pieces = (await piecesOfReport(db, sale.sale_key)).map((piece) => piece.item_id)
  await keepReturnsOf(call, store, { saleKey: sale.sale_key, voidedMs }, pieces)
  await cancelPurchase(call, purchase, reason, { reportedMs: call.nowMs })
  await saveSale(db, { ...sale, state: 'void' })
  const exchanged = await undoExchange(call, store, sale)
  await settlePieces(call, store, [...pieces, ...exchanged])
  call.changed(purchaseId)
  return { purchaseId, released }
}

async function releasedUnits({ db }: Call, purchaseId: string): Promise<ReleasedUnit[]> {
  const rights = await allRightsOf(db, purchaseId)
  const lines = new Map((await readLines(db, purchaseId)).map((line) => [line.line_id, line.till_line ?? line.line_id]))
  const used = [...rights.values()].filter((row) => row.state === 'used' && row.returned_by === null && !isPass(row))
  const units = new Map(
    used.map((row) => {
      const unit = { lineId: lines.get(row.line_id) ?? row.line_id, unit: row.unit_no }
      return [`${unit.lineId}/${unit.unit}`, unit]
    }),
  )
  return [...units.values()]
}
