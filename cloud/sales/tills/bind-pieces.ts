import { parseEpc } from '../../../policy/gs1/epc.ts'
import { piecesLeft } from '../../../policy/decimals.ts'
import { gtinOfLine } from '../../../policy/till-sale.ts'
import { RIGHT_CLASSES } from '../../../policy/vocabulary.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { insertChunks } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { updateStatuses, type StatusChange } from '../../protection/items/item-queries.ts'
import { notifyGates } from '../../protection/items/item-sequence.ts'
import { allRightsOf, rightName } from '../../protection/rights/rights.ts'
import { soldPieces, type Pieces } from '../../shop/purchases/line-value.ts'
import { readLines, readUnits } from '../../shop/purchases/queries.ts'
import { refundsOf } from '../../shop/purchases/refund-queries.ts'
import { returnedPieces } from '../../shop/purchases/refunds.ts'
import { undoReturned } from '../../protection/rights/rights.ts'
import { bindUnits } from '../checkout/complete-purchase.ts'

/** What is known of the pieces of a till's sale. */
interface SoldGoods {
  readonly lines: readonly Row<'purchase_line'>[]
  readonly units: Row<'purchase_unit'>[]
  readonly gone: ReadonlyMap<string, Pieces>
  /** True if somebody used a right of the unit. */
  isUsed(unit: Row<'purchase_unit'>): boolean
}

async function goodsOfSale(db: Db, purchaseId: string): Promise<SoldGoods> {
  const rights = await allRightsOf(db, purchaseId)
  return {
    lines: await readLines(db, purchaseId),
    units: await readUnits(db, purchaseId),
    gone: returnedPieces(await refundsOf(db, purchaseId)),
    isUsed: ({ line_id: lineId, unit_no: unitNo }) =>
      RIGHT_CLASSES.some((rightClass) => rights.get(rightName({ lineId, unitNo, rightClass }))?.state === 'used'),
  }
}

/**
 * Binds items to pieces of a till's sale after it was recorded: they are paid. `lineId`: the line that names the tag;
 * undefined: any line of the product without a known tag. Returns the items for which no piece is left: nothing changes
 * for them.
 */
export async function bindPieces(
  call: Call,
  purchase: Row<'purchase'>,
  wanted: readonly { item: Row<'protected_item'>; lineId?: string | undefined }[],
  reportedMs: number,
): Promise<Row<'protected_item'>[]> {
  const { db, nowMs } = call
  const goods = await goodsOfSale(db, purchase.purchase_id)
  const left: Row<'protected_item'>[] = []
  const bound: Row<'purchase_unit'>[] = []
  const changes: { item: Row<'protected_item'>; change: StatusChange }[] = []
  for (const { item, lineId } of wanted) {
    const lines = goods.lines.filter((line) =>
      lineId === undefined ? isSameProduct(line, item) : line.line_id === lineId,
    )
    const unit = freeUnit(lines, goods, item)
    if (!unit) {
      left.push(item)
      continue
    }
    const line = lines.find((each) => each.line_id === unit.line_id)
    const { line_id } = unit
    const { product_id = null, ean = null } = line ?? {}
    const at = goods.units.findIndex((each) => isSameUnit(each, unit))
    if (at < 0) goods.units.push(unit)
    else {
      goods.units[at] = unit
      // It counted as returned, by reports that have changed since.
      await undoReturned(db, { lineId: line_id, unitNo: unit.unit_no })
    }
    bound.push(unit)
    const product = item.product_id === null && product_id !== null && { product_id, ean }
    const of = { purchase_id: purchase.purchase_id, line_id, unit_no: unit.unit_no }
    changes.push({ item, change: { item_status: 'paid', ...of, ...product } })
  }
  if (bound.length === 0) return left
  call.requireAlone()
  for (const chunk of insertChunks(bound)) await bindUnits(db, chunk)
  await db
    .updateTable('purchase_line')
    .set({ tagged: 1 })
    .where('purchase_id', '=', purchase.purchase_id)
    .where('line_id', 'in', [...new Set(bound.map((unit) => unit.line_id))])
    .execute()
  await updateStatuses(db, changes, nowMs, { reportedMs })
  notifyGates(call, purchase.store_id)
  call.changed(purchase.purchase_id)
  return left
}

const isSameUnit = (a: Row<'purchase_unit'>, b: Row<'purchase_unit'>) =>
  a.line_id === b.line_id && a.unit_no === b.unit_no

function isSameProduct(line: Row<'purchase_line'>, item: Row<'protected_item'>): boolean {
  if (line.price_cent < 0 || line.weight_grams !== null) return false
  if (item.product_id !== null && line.product_id !== null) return line.product_id === item.product_id
  const gtin = parseEpc(item.epc ?? '')?.gtin14
  return gtin !== undefined && gtinOfLine({ ean: line.ean ?? undefined }) === gtin
}

/**
 * A piece of these lines that did not come back, has no known tag, and whose right is unused; or the piece that the
 * item was bound to before. The line may have no unit for it yet, because the product carries no tags by the catalogue.
 */
function freeUnit(
  lines: readonly Row<'purchase_line'>[],
  { units, gone, isUsed }: SoldGoods,
  { item_id }: Row<'protected_item'>,
): Row<'purchase_unit'> | undefined {
  for (const line of lines) {
    const back = gone.get(line.line_id)
    const ofLine = units.filter((unit) => unit.line_id === line.line_id)
    const here = ofLine.filter((unit) => !back?.unitNos.includes(unit.unit_no))
    const own = here.find((unit) => unit.bound === 1 && unit.item_id === item_id)
    if (own) return own
    const open = here.filter((unit) => unit.bound === 0 && !isUsed(unit))
    if (here.length - open.length >= piecesLeft(soldPieces(line), back?.quantity)) continue
    const first = open[0] ?? {
      line_id: line.line_id,
      unit_no: Math.max(0, ...ofLine.map((unit) => unit.unit_no)) + 1,
      purchase_id: line.purchase_id,
      receipt_index: null,
      taken_back: null,
    }
    return { ...first, item_id, bound: 1 }
  }
  return undefined
}
