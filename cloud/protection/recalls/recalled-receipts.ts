import { sql, type SqlBool } from 'kysely'
import type { DenyEntry } from '../../../policy/documents/store-documents.ts'
import { MAX_ENTRIES } from '../../../policy/receipts/receipt-claims.ts'
import type { Call, Services } from '../../platform/operations/operation.ts'
import { groupBy, type Database } from '../../platform/persistence/database.ts'
import type { ProductRecallRow } from '../../platform/persistence/tables/protection.ts'
import type { PurchaseLineRow, PurchaseRow } from '../../platform/persistence/tables/purchases.ts'
import { UNIT_FIELDS } from '../../shop/catalogue/render.ts'
import { readLines, readUnits } from '../../shop/purchases/queries.ts'
import { tellsUnitsApart } from '../../shop/receipts/receipt-of-purchase.ts'
import { readItems } from '../items/item-queries.ts'
import {
  inStoresOf,
  isRecalled,
  recallsByProduct,
  stopsWholeProduct,
  type Recall,
  type RecallableGoods,
} from '../items/recalls.ts'
import { deny, GUARD_SECONDS } from '../rights/deny-list.ts'
import { publishInTurns } from './publish-recalls.ts'

/**
 * Tells agents by the deny list which units of receipts a recall stops. A receipt names only the product of a unit that
 * was bought by its product code. So agents need this for a recall of a lot, expiry or serial, which the line states, or
 * the item that was bound to the unit since. The policy names the products of which all goods are recalled, so these need
 * it only for receipts without names.
 */

type DenyCall = Pick<Call, 'db' | 'services' | 'afterCommit' | 'nowMs'>

/** Purchases per transaction, because each transaction locks the heads of its stores. */
const PURCHASES_AT_ONCE = 500

/** Stops the units of a purchase that is paid while a recall is active: the payment had started before. */
export async function stopRecalledUnits(
  call: DenyCall,
  purchase: PurchaseRow,
  lines: readonly PurchaseLineRow[],
  units: number,
): Promise<void> {
  const states = (line: PurchaseLineRow) => UNIT_FIELDS.some((field) => line[field] !== null)
  if (units === 0 || (tellsUnitsApart(purchase, units) && !lines.some(states))) return
  const entries = await entriesOf(call, purchase, () => true)
  const stopped = entries.filter((entry) => !('ended' in entry))
  if (stopped.length > 0) await deny(call, purchase.store_id, stopped)
}

/** Publishes the units of the next receipts that the recall stops, or stopped until it ended. */
export async function publishReceipts(call: DenyCall, recall: ProductRecallRow): Promise<void> {
  if (recall.receipts_after === null) return
  const purchases = await nextPurchases(call, recall, recall.receipts_after)
  const entries: { storeId: string; entry: DenyEntry }[] = []
  for (const purchase of purchases) {
    const { store_id: storeId } = purchase
    const found = await entriesOf(call, purchase, (goods) => isRecalled([recall], goods))
    entries.push(...found.map((entry) => ({ storeId, entry })))
  }
  for (const [storeId, ofStore] of groupBy(entries, (each) => each.storeId))
    await deny(
      call,
      storeId,
      ofStore.map(({ entry }) => entry),
    )
  const last = purchases.length < PURCHASES_AT_ONCE ? null : (purchases.at(-1)?.purchase_id ?? null)
  await call.db
    .updateTable('product_recall')
    .set({ receipts_after: last })
    .where('recall_id', '=', recall.recall_id)
    .execute()
}

/** Paid purchases whose receipts are valid, with a line that the recall stops, in the order of their ids. */
function nextPurchases({ db, nowMs }: DenyCall, recall: ProductRecallRow, after: string): Promise<PurchaseRow[]> {
  const purchases = db
    .selectFrom('purchase as p')
    .selectAll('p')
    .where(inStoresOf('p', recall))
    .where('p.receipt_exp', '>', Math.floor(nowMs / 1_000))
    .where('p.purchase_id', '>', after)
    .where((eb) =>
      eb.exists(
        UNIT_FIELDS.reduce(
          (units, field) =>
            recall[field] === null
              ? units
              : units.where((unit) => unit(unit.fn.coalesce(`i.${field}`, `l.${field}`), '=', recall[field])),
          eb
            .selectFrom('purchase_line as l')
            .innerJoin('purchase_unit as u', 'u.line_id', 'l.line_id')
            .leftJoin('protected_item as i', 'i.item_id', 'u.item_id')
            .select('l.line_id')
            .whereRef('l.purchase_id', '=', 'p.purchase_id')
            .where('l.product_id', '=', recall.product_id),
        ),
      ),
    )
    .orderBy('p.purchase_id')
    .limit(PURCHASES_AT_ONCE)
  if (!stopsWholeProduct(recall)) return purchases.execute()
  const isLong = sql<SqlBool>`(SELECT COUNT(*) FROM purchase_unit WHERE purchase_id = p.purchase_id) > ${MAX_ENTRIES}`
  return purchases.where((eb) => eb.or([eb('p.price_origin', '=', 'shopper'), isLong])).execute()
}

/** A unit of a purchase as a recall sees it. */
type SoldUnit = RecallableGoods & { line: PurchaseLineRow }

/** Entries for these units of a purchase: one for those that a recall stops, one for the others. */
async function entriesOf(
  { db }: DenyCall,
  purchase: PurchaseRow,
  concerns: (unit: SoldUnit) => boolean,
): Promise<DenyEntry[]> {
  const { purchase_id: purchaseId, store_id: storeId, cti, receipt_exp: exp } = purchase
  const recallsFor = await recallsByProduct(db, purchase.tenant)
  const units = await readUnits(db, purchaseId)
  const items = await readItems(
    db,
    units.flatMap((unit) => unit.item_id ?? []),
  )
  const lines = new Map((await readLines(db, purchaseId)).map((line) => [line.line_id, line]))
  const isNamedByPolicy = (recall: Recall) => stopsWholeProduct(recall) && tellsUnitsApart(purchase, units.length)
  const [stopped, others]: [number[], number[]] = [[], []]
  for (const { line_id, item_id, receipt_index } of units) {
    const line = lines.get(line_id)
    if (!line || receipt_index === null) continue
    const unit: SoldUnit = { storeId, line, item: items.get(item_id ?? '') }
    if (!concerns(unit)) continue
    const recalls = recallsFor(line.product_id).filter((recall) => !isNamedByPolicy(recall))
    const numbers = isRecalled(recalls, unit) ? stopped : others
    numbers.push(receipt_index)
  }
  if (cti === null || exp === null) return []
  const entry = { kind: 'recall', cti, until: exp + GUARD_SECONDS } as const
  return [
    ...(stopped.length > 0 ? [{ ...entry, ordinals: stopped }] : []),
    ...(others.length > 0 ? [{ ...entry, ordinals: others, ended: true as const }] : []),
  ]
}

/** Publishes the receipts that the operations did not publish. */
export function publishRecalledReceipts(database: Database, services: Services): Promise<void> {
  return publishInTurns(database, services, {
    job: 'receipts of recalls',
    column: 'receipts_after',
    publish: (recallId, tenant) => publishNext(database, services, recallId, tenant),
  })
}

/** Publishes the next receipts. Returns false if all are published. */
async function publishNext(database: Database, services: Services, recallId: string, tenant: string): Promise<boolean> {
  const announced: (() => void | Promise<void>)[] = []
  const isDue = await database.write(
    async (db) => {
      // The update locks the row, so that two processes do not publish the same receipts.
      const recall = await db
        .updateTable('product_recall')
        .set((eb) => ({ receipts_after: eb.ref('receipts_after') }))
        .where('recall_id', '=', recallId)
        .where('receipts_after', 'is not', null)
        .returningAll()
        .executeTakeFirst()
      const nowMs = services.platform.clock.wall()
      const afterCommit: Call['afterCommit'] = (task) => void announced.push(task)
      if (recall) await publishReceipts({ db, services, nowMs, afterCommit }, recall)
      return recall !== undefined
    },
    { holder: tenant },
  )
  for (const announce of announced) await announce()
  return isDue
}
