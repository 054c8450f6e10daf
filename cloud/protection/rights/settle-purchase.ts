import type { RightClass } from '../../../policy/vocabulary.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { groupBy } from '../../platform/persistence/group-by.ts'
import { preparedForMany } from '../../platform/persistence/prepared-many.ts'
import type { UnitRightRow } from '../../platform/persistence/tables/protection.ts'

const purchasesOf = preparedForMany((db, ids) =>
  db
    .selectFrom('purchase')
    .select(['purchase_id', 'store_id', 'status', 'security_tag_mode', 'security_tag_status'])
    .where('purchase_id', 'in', ids),
)
const unitsOf = preparedForMany((db, ids) =>
  db.selectFrom('purchase_unit').select('purchase_id').where('purchase_id', 'in', ids),
)
const usedOf = preparedForMany((db, ids) =>
  db
    .selectFrom('unit_right')
    .select(['purchase_id', 'right_class', 'outcome', 'returned_by'])
    .where('purchase_id', 'in', ids)
    .where('state', '=', 'used'),
)
const writeDeactivated = preparedForMany((db, ids) =>
  db
    .updateTable('purchase')
    .set((eb) => ({ security_tag_status: 'deactivated', rev: eb('rev', '+', 1) }))
    .where('purchase_id', 'in', ids),
)
const writeUnloaded = preparedForMany((db, ids) =>
  db
    .updateTable('purchase')
    .set((eb) => ({ status: 'UNLOADED', payment_by_ms: null, rev: eb('rev', '+', 1) }))
    .where('purchase_id', 'in', ids),
)

/**
 * Updates purchases after releases and exits. Sets the tag status `deactivated` after all releases, and the purchase
 * status `UNLOADED` after all exits.
 */
export async function settlePurchases(
  { db, emit }: { db: Db; emit: Call['emit'] },
  purchaseIds: readonly string[],
): Promise<void> {
  const purchases = await purchasesOf(db, purchaseIds)
  if (purchases.length === 0) return
  const units = groupBy(await unitsOf(db, purchaseIds), (unit) => unit.purchase_id)
  const used = groupBy(await usedOf(db, purchaseIds), (right) => right.purchase_id)
  const countOf = (purchaseId: string) => units.get(purchaseId)?.length ?? 0
  const areAllOf = (purchaseId: string, rightClass: RightClass) =>
    areAll(used.get(purchaseId) ?? [], rightClass, countOf(purchaseId))
  const deactivated = purchases.filter((p) => p.security_tag_status === 'pending' && areAllOf(p.purchase_id, 'release'))
  await writeDeactivated(
    db,
    deactivated.map((p) => p.purchase_id),
  )
  for (const { purchase_id: transactionId, store_id: storeId, security_tag_mode: securityTagMode } of deactivated) {
    emit({
      type: 'securityTag.deactivated',
      storeId,
      data: { transactionId, storeId, securityTagMode, securityTagStatus: 'deactivated' },
    })
  }
  const unloaded = purchases.filter(
    (p) => p.status === 'SUCCESS' && countOf(p.purchase_id) > 0 && areAllOf(p.purchase_id, 'exit'),
  )
  await writeUnloaded(
    db,
    unloaded.map((p) => p.purchase_id),
  )
}

/** True if all units were confirmed or returned, and at least one was not returned. */
function areAll(
  rights: readonly Pick<UnitRightRow, 'right_class' | 'outcome' | 'returned_by'>[],
  rightClass: RightClass,
  units: number,
): boolean {
  const ofClass = rights.filter((right) => right.right_class === rightClass)
  const returned = ofClass.filter((right) => right.returned_by !== null).length
  const confirmed = ofClass.filter((right) => right.returned_by === null && right.outcome === 'confirmed').length
  return confirmed === units - returned && (returned === 0 || returned < units)
}
