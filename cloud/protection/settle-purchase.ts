import type { RightClass } from '../../policy/vocabulary.ts'
import type { Call } from '../operations/operation.ts'
import type { Db } from '../persistence/database.ts'
import { readUnits, updatePurchase } from '../scan-and-go/queries.ts'
import { rightsOfPurchase } from './rights.ts'

/** What follows for the purchase once units were released or have left: its tag status, and that the goods are gone. */
export async function settlePurchase({ db, emit }: { db: Db; emit: Call['emit'] }, purchaseId: string): Promise<void> {
  const purchase = await db.selectFrom('purchase').selectAll().where('purchase_id', '=', purchaseId).executeTakeFirst()
  if (!purchase) return
  const units = (await readUnits(db, purchaseId)).length
  let current = purchase
  if (current.security_tag_status === 'pending' && (await areAll(db, purchaseId, 'release', units))) {
    current = await updatePurchase(db, current, { security_tag_status: 'deactivated' })
    emit({
      type: 'securityTag.deactivated',
      storeId: purchase.store_id,
      data: { transactionId: purchaseId, storeId: purchase.store_id, securityTagMode: purchase.security_tag_mode, securityTagStatus: 'deactivated' },
    })
  }
  if (current.status === 'SUCCESS' && units > 0 && (await areAll(db, purchaseId, 'exit', units))) {
    await updatePurchase(db, current, { status: 'UNLOADED' })
  }
}

/** Whether every unit was confirmed; those that came back and were refunded do not count. */
async function areAll(db: Db, purchaseId: string, rightClass: RightClass, units: number): Promise<boolean> {
  const used = (await rightsOfPurchase(db, purchaseId, rightClass)).filter((right) => right.state === 'used')
  const countOf = (outcome: string) => used.filter((right) => right.outcome === outcome).length
  const returned = countOf('returned')
  return countOf('confirmed') === units - returned && (returned === 0 || returned < units)
}
