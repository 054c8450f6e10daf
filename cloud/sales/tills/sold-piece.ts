import { isSold } from '../../../policy/item-status.ts'
import type { SalePiece } from '../../../policy/journal.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { newestMoveOfEach } from '../../protection/items/item-moves.ts'
import { findItem } from '../../protection/items/item-queries.ts'
import { goodsOf, recallsIn } from '../../protection/items/recalls.ts'
import { raiseException } from '../../protection/records/exceptions.ts'
import { findRight, storeGone } from '../../protection/rights/rights.ts'
import { findPurchase, readUnits, updatePurchase } from '../../shop/purchases/queries.ts'
import { bindPieces } from './bind-pieces.ts'
import { makesPaid } from './doubts.ts'
import { findSale } from './queries.ts'
import { reportSale } from './piece-reports.ts'
import { settlePieces } from './settle-pieces.ts'

/**
 * Binds the tag that passed a gate to a piece that a till sold without naming its tag (`tillSales.passByProduct`). Returns
 * false if the sale is not here yet: the cloud retries the row. The tag has left, so what does not fit is an exception,
 * and the item keeps its status.
 */
export async function bindSoldPiece(
  call: Call,
  store: Row<'store'>,
  { sale: saleKey, epc }: SalePiece,
  { storedMs, agentId }: { storedMs: number; agentId: string },
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
  // A revoked till's sales are on hold.
  const isHeld = purchase.deny_seq !== null || !makesPaid(sale)
  const isOver = sale.state !== 'paid' || purchase.status === 'CANCELLED' || isHeld
  const left = unfit || isOver || !item ? ['none'] : await bindPieces(call, purchase, [{ item }], storedMs)
  const bound = (await readUnits(db, purchaseId)).find((unit) => unit.bound === 1 && unit.item_id === item?.item_id)
  if (left.length > 0 || !item || !bound) {
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
  // The tag leaves with the goods, so the receipt releases no other one for this unit, also if a token was granted for it
  // that is not used yet.
  const release = { lineId: bound.line_id, unitNo: bound.unit_no, rightClass: 'release', purchaseId } as const
  if ((await findRight(db, release))?.state !== 'used') await storeGone(db, [release], `passed/${epc}`)
  if (units.length === 0 && purchase.security_tag_status === 'deactivated')
    await updatePurchase(db, purchase, { security_tag_status: 'pending' })
  // The goods may have come back before the agent of the gate was online.
  await reportSale(call, store, { key: saleKey, purchaseId, agentId }, [
    { item, lineId: bound.line_id, isAgain: false, atMs: storedMs },
  ])
  await settlePieces(call, store, [item.item_id])
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
  const recalls = await recallsIn(db, store)
  if (item.item_status !== 'sellable' || recalls.stop(await goodsOf(db, item))) return 'sale_of_held_item'
  const moves = await newestMoveOfEach(db, [item.item_id], { storeId: store.store_id })
  return moves.some((move) => (move.reported_ms ?? move.at_ms) > storedMs) ? 'item_changed' : undefined
}
