import type { RightClass } from '../../policy/vocabulary.ts'
import type { Call } from '../operations/operation.ts'
import { denyRights } from './deny-list.ts'

/** What a new home of receipts must know before it honours those from before. */

const GUARD_SECONDS = 60

/** Puts every used right of the store's receipts that still live on its deny list. */
export async function tellUsedRights(call: Call, storeId: string): Promise<void> {
  const nowS = Math.floor(call.nowMs / 1_000)
  const used = await call.db
    .selectFrom('unit_right')
    .innerJoin('purchase', 'purchase.purchase_id', 'unit_right.purchase_id')
    .select(['unit_right.purchase_id', 'unit_right.line_id', 'unit_right.unit_no', 'unit_right.right_class'])
    .where('purchase.store_id', '=', storeId)
    .where('purchase.receipt_exp', '>', nowS)
    .where('unit_right.state', '=', 'used')
    .orderBy('unit_right.purchase_id')
    .execute()
  const groups = new Map<string, typeof used>()
  for (const right of used) {
    const name = `${right.purchase_id} ${right.right_class}`
    groups.set(name, [...(groups.get(name) ?? []), right])
  }
  for (const rights of groups.values()) {
    const [first] = rights
    const purchase = first && (await call.db.selectFrom('purchase').selectAll().where('purchase_id', '=', first.purchase_id).executeTakeFirst())
    if (!first || !purchase?.receipt_exp) continue
    const units = rights.map((right) => ({ lineId: right.line_id, unitNo: right.unit_no }))
    await denyRights(call, purchase, first.right_class as RightClass, units, purchase.receipt_exp + GUARD_SECONDS)
  }
}

/** Until the home has taken the deny list this far, receipts from before now are for staff. */
export async function noteHomeMove({ db, nowMs }: Call, storeId: string, denySeq: number): Promise<void> {
  const row = { moved_s: Math.ceil(nowMs / 1_000), deny_seq: denySeq }
  await db
    .insertInto('home_move')
    .values({ store_id: storeId, ...row })
    .onConflict((c) => c.column('store_id').doUpdateSet(row))
    .execute()
}
