import { PASS } from '../../../policy/receipts/receipt-claims.ts'
import { sql, type SqlBool } from 'kysely'
import type { DenyEntry } from '../../../policy/documents/store-documents.ts'
import { endsSoon, runJobStep } from '../../platform/operations/job-steps.ts'
import type { Call, Services } from '../../platform/operations/operation.ts'
import { groupBy, type Database } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { UNIT_FIELDS } from '../../shop/catalogue/render.ts'
import { readLines, readUnits } from '../../shop/purchases/queries.ts'
import { tellsUnitsApart } from '../../shop/receipts/receipt-of-purchase.ts'
import { readItems } from '../items/item-queries.ts'
import {
  namesGoods,
  recallsIn,
  stopsWholeProduct,
  storesOfRecall,
  type Recall,
  type RecallableGoods,
  type StoreRecalls,
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

/**
 * Receipts that a transaction looks at, and units of the receipts that it publishes. Each transaction locks the heads of
 * its stores, and other accounts wait for it.
 */
const AT_ONCE = { receipts: 200, units: 2_000 }

/** Stops the units of a purchase that is paid while a recall is active: the payment had started before. */
export async function stopRecalledUnits(
  call: DenyCall,
  purchase: Row<'purchase'>,
  lines: readonly Row<'purchase_line'>[],
  units: number,
): Promise<void> {
  const states = (line: Row<'purchase_line'>) => UNIT_FIELDS.some((field) => line[field] !== null)
  if (units === 0 || (tellsUnitsApart(purchase, units) && !lines.some(states))) return
  const recalls = await recallsIn(call.db, purchase)
  const entries = await entriesOf(call, purchase, { recalls, concerns: () => true })
  const stopped = entries.filter((entry) => !('ended' in entry))
  if (stopped.length > 0) await deny(call, purchase.store_id, stopped)
}

/** Publishes the units of the next receipts that the recall stops, or stopped until it ended. */
export async function publishReceipts(call: DenyCall, recall: Row<'product_recall'>): Promise<void> {
  if (recall.receipts_after === null) return
  const receipts = await nextReceipts(call, recall, recall.receipts_after)
  const inStores = await storesOfRecall(call.db, recall)
  const ofStores = new Map<string, StoreRecalls>()
  const isOver = endsSoon(call.services.platform.clock)
  const concerns = (goods: RecallableGoods) => namesGoods(recall, goods)
  const entries: { storeId: string; entry: DenyEntry }[] = []
  let last = receipts.length < AT_ONCE.receipts ? null : cursorOf(receipts.at(-1))
  let published = 0
  for (const [n, { has_goods, ...purchase }] of receipts.entries()) {
    if (Number(has_goods) === 0 || inStores?.has(purchase.store_id) === false) continue
    const units = await readUnits(call.db, purchase.purchase_id)
    // The policy names the product, so agents know such receipts.
    if (stopsWholeProduct(recall) && tellsUnitsApart(purchase, units.length)) continue
    const recalls = ofStores.get(purchase.store_id) ?? (await recallsIn(call.db, purchase))
    ofStores.set(purchase.store_id, recalls)
    const found = await entriesOf(call, purchase, { recalls, concerns, units })
    entries.push(...found.map((entry) => ({ storeId: purchase.store_id, entry })))
    published += units.length
    if (n === receipts.length - 1 || (published < AT_ONCE.units && !isOver())) continue
    last = cursorOf(purchase)
    break
  }
  for (const [storeId, ofStore] of groupBy(entries, (each) => each.storeId))
    await deny(
      call,
      storeId,
      ofStore.map(({ entry }) => entry),
    )
  await call.db
    .updateTable('product_recall')
    .set({ receipts_after: last })
    .where('recall_id', '=', recall.recall_id)
    .execute()
}

/** Place of a receipt in the order of `nextReceipts`. */
function cursorOf(receipt: Pick<Row<'purchase'>, 'receipt_exp' | 'purchase_id'> | undefined): string | null {
  return receipt ? `${receipt.receipt_exp ?? 0} ${receipt.purchase_id}` : null
}

/** The next valid receipts of the account, in the order of their expiry. `has_goods`: 1 if a line has the EAN. */
function nextReceipts({ db, nowMs }: DenyCall, { tenant, ean }: Row<'product_recall'>, after: string) {
  const [exp = '0', id = ''] = after === '' ? [] : after.split(' ')
  return db
    .selectFrom('purchase as p')
    .selectAll('p')
    .select(
      sql<number>`CASE WHEN EXISTS (SELECT 1 FROM purchase_line l
        WHERE l.tenant = ${tenant} AND l.ean = ${ean} AND l.purchase_id = p.purchase_id)
        THEN 1 ELSE 0 END`.as('has_goods'),
    )
    .where('p.tenant', '=', tenant)
    .where('p.receipt_exp', '>', Math.floor(nowMs / 1_000))
    .where(sql<SqlBool>`(p.receipt_exp, p.purchase_id) > (${Number(exp)}, ${id})`)
    .orderBy('p.receipt_exp')
    .orderBy('p.purchase_id')
    .limit(AT_ONCE.receipts)
    .execute()
}

/** A unit of a purchase as a recall sees it. */
type SoldUnit = RecallableGoods & { line: Row<'purchase_line'> }

interface Selection {
  recalls: StoreRecalls
  concerns: (unit: SoldUnit) => boolean
  /** Units of the purchase; absent: read here. */
  units?: readonly Row<'purchase_unit'>[]
}

/**
 * Entries for these units of a purchase: one for those that a recall stops, one for the others. A receipt all of whose
 * goods are stopped opens no barrier, also at an agent that asks the receipt home.
 */
async function entriesOf(
  { db }: DenyCall,
  purchase: Row<'purchase'>,
  { recalls, concerns, units: known }: Selection,
): Promise<DenyEntry[]> {
  const { purchase_id: purchaseId, cti, receipt_exp: exp } = purchase
  const units = known ?? (await readUnits(db, purchaseId))
  const items = await readItems(
    db,
    units.flatMap((unit) => unit.item_id ?? []),
  )
  const lines = new Map((await readLines(db, purchaseId)).map((line) => [line.line_id, line]))
  const isNamedByPolicy = (recall: Recall) => stopsWholeProduct(recall) && tellsUnitsApart(purchase, units.length)
  const [stopped, others]: [number[], number[]] = [[], []]
  let isOpen = false
  for (const { line_id, item_id, receipt_index } of units) {
    const line = lines.get(line_id)
    if (!line || receipt_index === null) continue
    const unit: SoldUnit = { line, item: items.get(item_id ?? '') }
    const isStopped = recalls.of(unit).some((recall) => !isNamedByPolicy(recall))
    isOpen ||= !isStopped
    if (concerns(unit)) (isStopped ? stopped : others).push(receipt_index)
  }
  const ofPass = isOpen ? others : stopped
  if (ofPass.length > 0) ofPass.push(PASS)
  if (cti === null || exp === null) return []
  const entry = { kind: 'recall', cti, until: exp + GUARD_SECONDS } as const
  return [
    ...(stopped.length > 0 ? [{ ...entry, ordinals: stopped }] : []),
    ...(others.length > 0 ? [{ ...entry, ordinals: others, ended: true as const }] : []),
  ]
}

/** Publishes the receipts that the operations did not publish. */
export function publishRecalledReceipts(database: Database, services: Services): Promise<boolean> {
  return publishInTurns(database, services, {
    job: 'receipts of recalls',
    column: 'receipts_after',
    publish: (recallId, tenant) => publishNext(database, services, recallId, tenant),
  })
}

/** Publishes the next receipts, unless all are published. */
function publishNext(database: Database, services: Services, recallId: string, tenant: string): Promise<void> {
  return runJobStep({ database, services, holder: tenant }, async (call) => {
    // The update locks the row, so that two processes do not publish the same receipts.
    const recall = await call.db
      .updateTable('product_recall')
      .set((eb) => ({ receipts_after: eb.ref('receipts_after') }))
      .where('recall_id', '=', recallId)
      .where('receipts_after', 'is not', null)
      .returningAll()
      .executeTakeFirst()
    if (recall) await publishReceipts(call, recall)
  })
}
