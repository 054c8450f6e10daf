import { parseEpc } from '../../../policy/gs1/epc.ts'
import { isSold } from '../../../policy/item-status.ts'
import type { SalePiece } from '../../../policy/journal.ts'
import { gtinOfLine } from '../../../policy/till-sale.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { newestMoveOfEach } from '../../protection/items/item-moves.ts'
import { findItem, updateItem } from '../../protection/items/item-queries.ts'
import { notifyGates } from '../../protection/items/item-sequence.ts'
import { goodsOf, isRecalled, recallsByEan, eanOf } from '../../protection/items/recalls.ts'
import { raiseException } from '../../protection/records/exceptions.ts'
import { allRightsOf, rightName } from '../../protection/rights/rights.ts'
import { piecesLeft } from '../../../policy/pieces-left.ts'
import { soldPieces } from '../../shop/purchases/line-value.ts'
import { findPurchase, readLines, readUnits, updatePurchase } from '../../shop/purchases/queries.ts'
import { refundsOf } from '../../shop/purchases/refund-queries.ts'
import { returnedPieces } from '../../shop/purchases/refunds.ts'
import { RIGHT_CLASSES } from '../../../policy/vocabulary.ts'
import { givesRights } from './doubts.ts'
import { findSale } from './queries.ts'
import { applyReturnsOfItems } from './return-goods.ts'

/** A piece of a sale that has no tag yet. */
interface FreePiece {
  readonly line: Row<'purchase_line'>
  readonly unitNo: number
  /** False: the line has no unit for it yet, because the product carries no tags by the catalogue. */
  readonly hasUnit: boolean
}

/**
 * Binds the tag that passed a gate to a piece that a till sold without naming its tag (`tillSales.passByProduct`). Returns
 * false if the sale is not here yet: the cloud retries the row. The tag has left, so what does not fit is an exception,
 * and the item keeps its status.
 */
export async function bindSoldPiece(
  call: Call,
  store: Row<'store'>,
  { sale: saleKey, epc }: SalePiece,
  storedMs: number,
): Promise<boolean> {
  const { db, nowMs } = call
  const sale = await findSale(db, saleKey)
  if (sale?.store_id !== store.store_id || sale.purchase_id === null) return false
  const purchase = await findPurchase(db, store.tenant, sale.purchase_id)
  if (!purchase) return false
  const { purchase_id: purchaseId } = purchase
  const item = await findItem(db, store.tenant, { epc })
  const units = await readUnits(db, purchaseId)
  if (item && units.some((unit) => unit.bound === 1 && unit.item_id === item.item_id)) return true
  const unfit = await whyUnfit(call, store, item, storedMs)
  const isOver = sale.state !== 'paid' || purchase.status === 'CANCELLED' || !givesRights(sale)
  const piece = unfit || isOver || !item ? undefined : await freePiece(call, purchaseId, units, item)
  if (!piece || !item) {
    await raiseException(
      { db, tenant: store.tenant, platform: call.services.platform, nowMs },
      {
        storeId: store.store_id,
        kind: unfit ?? 'sale_of_more_items',
        subject: epc,
        purchaseId,
        detail: `the tag ${epc} passed a gate for a piece of sale ${sale.sale_id}, ${unfit ? UNFIT[unfit] : 'which has no such piece left'}`,
      },
    )
    return true
  }
  call.requireAlone()
  const { line, unitNo, hasUnit } = piece
  const bound = { item_id: item.item_id, bound: 1 }
  if (hasUnit)
    await db
      .updateTable('purchase_unit')
      .set(bound)
      .where('line_id', '=', line.line_id)
      .where('unit_no', '=', unitNo)
      .execute()
  else {
    const unit = {
      line_id: line.line_id,
      unit_no: unitNo,
      purchase_id: purchaseId,
      receipt_index: null,
      taken_back: null,
    }
    await db
      .insertInto('purchase_unit')
      .values({ ...unit, ...bound })
      .execute()
    await db.updateTable('purchase_line').set({ tagged: 1 }).where('line_id', '=', line.line_id).execute()
  }
  if (units.length === 0 && purchase.security_tag_status === 'deactivated')
    await updatePurchase(db, purchase, { security_tag_status: 'pending' })
  const product = item.product_id === null && line.product_id !== null && { product_id: line.product_id, ean: line.ean }
  const paid = { item_status: 'paid', purchase_id: purchaseId, line_id: line.line_id, unit_no: unitNo, ...product }
  await updateItem(db, item, paid, nowMs, { reportedMs: storedMs })
  notifyGates(call, store.store_id)
  // The goods may have come back before the agent of the gate was online.
  await applyReturnsOfItems(call, store, purchaseId, [item.item_id], storedMs)
  call.changed(purchaseId)
  return true
}

const UNFIT = {
  sale_tag_unknown: 'and is not registered in this store',
  item_already_paid: 'and was sold before',
  sale_of_held_item: 'and its goods must stay',
  item_changed: 'and its goods came back, or were counted again, since then',
} as const

/** Why the item of a tag that passed cannot become paid; undefined if it can. */
async function whyUnfit(
  { db }: Call,
  store: Row<'store'>,
  item: Row<'protected_item'> | undefined,
  storedMs: number,
): Promise<keyof typeof UNFIT | undefined> {
  if (item?.store_id !== store.store_id) return 'sale_tag_unknown'
  if (isSold(item.item_status)) return 'item_already_paid'
  const goods = await goodsOf(db, item)
  const recallsOf = await recallsByEan(db, store.tenant)
  if (item.item_status !== 'sellable' || isRecalled(recallsOf(eanOf(goods)), goods)) return 'sale_of_held_item'
  const moves = await newestMoveOfEach(db, [item.item_id], { storeId: store.store_id })
  return moves.some((move) => (move.reported_ms ?? move.at_ms) > storedMs) ? 'item_changed' : undefined
}

/** A piece of the item's product without a known tag, that did not come back, and whose right nobody has used. */
async function freePiece(
  { db }: Call,
  purchaseId: string,
  units: readonly Row<'purchase_unit'>[],
  item: Row<'protected_item'>,
): Promise<FreePiece | undefined> {
  const gtin = parseEpc(item.epc ?? '')?.gtin14
  const gone = returnedPieces(await refundsOf(db, purchaseId))
  const rights = await allRightsOf(db, purchaseId)
  const isUsed = ({ line_id: lineId, unit_no: unitNo }: Row<'purchase_unit'>) =>
    RIGHT_CLASSES.some((rightClass) => rights.get(rightName({ lineId, unitNo, rightClass }))?.state === 'used')
  for (const line of await readLines(db, purchaseId)) {
    const isSame =
      item.product_id === null || line.product_id === null
        ? gtin !== undefined && gtinOfLine({ ean: line.ean ?? undefined }) === gtin
        : line.product_id === item.product_id
    if (!isSame || line.price_cent < 0 || line.weight_grams !== null) continue
    const back = gone.get(line.line_id)
    const ofLine = units.filter((unit) => unit.line_id === line.line_id)
    const here = ofLine.filter((unit) => !back?.unitNos.includes(unit.unit_no))
    const open = here.filter((unit) => unit.bound === 0 && !isUsed(unit))
    if (here.length - open.length >= piecesLeft(soldPieces(line), back?.quantity)) continue
    const [first] = open
    if (first) return { line, unitNo: first.unit_no, hasUnit: true }
    const unitNo = Math.max(0, ...ofLine.map((unit) => unit.unit_no)) + 1
    return { line, unitNo, hasUnit: false }
  }
  return undefined
}
