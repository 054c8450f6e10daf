import { sql } from 'kysely'
import type { RightClass, Outcome } from '../../../policy/vocabulary.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { preparedForMany } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { mergeRedemptions, type UnitRedemption } from '../../../policy/authorization-state.ts'
import { LEASE_GUARD_MS, triesOf, type UnitKey } from './rights.ts'
import type { RedemptionBatch } from './redemption-batch.ts'

/** Unit of a redemption; undefined if it used no right. */
export async function unitOf(
  redemptions: Pick<RedemptionBatch, 'right'>,
  { line_id, unit_no, right_class }: Row<'redemption'>,
): Promise<UnitKey | undefined> {
  if (line_id === null || unit_no === null || right_class === null) return undefined
  const key = { lineId: line_id, unitNo: unit_no, rightClass: right_class as UnitKey['rightClass'] }
  const right = await redemptions.right({ purchaseId: '', ...key })
  return { purchaseId: right?.purchase_id ?? '', ...key }
}

/**
 * Updates a unit's right from all its redemptions. If all uses failed or the outcome is unknown, a leased right stays
 * leased. If a use by receipt had replaced the lease, and the lease is unused, the right then gets the lease back. With
 * `leaseEnded`, the right has no lease afterwards.
 *
 * `isDouble` is true if the right was used twice, `isUsed` if it was used at all. `claims`: number of its redemptions,
 * with those that failed. `returned` is set if the goods were returned: `unused` if the right has no use or all uses
 * failed, else `used`.
 */
export async function settleRight(
  redemptions: RedemptionBatch,
  key: UnitKey,
  leaseEnded = false,
): Promise<{ isDouble: boolean; isUsed: boolean; claims: number; returned?: 'used' | 'unused' }> {
  const uses = await redemptions.ofUnit(key)
  const { effective, failures, isDouble } = mergeRedemptions(uses.map(useOf), key.rightClass)
  const right = await redemptions.right(key)
  const isUsed = effective !== null
  const state = { isDouble, isUsed, claims: uses.length }
  // Returned goods must not be released again, so an outcome does not change their right.
  if (right && right.returned_by !== null) return { returned: isUsed ? 'used' : 'unused', ...state }
  const isUnknown = effective?.outcome === 'unknown'
  const isOpen = effective === null || isUnknown
  if (right?.state === 'leased' && !leaseEnded && isOpen) {
    const known = triesOf(right)
    const lease = { nonce: right.nonce ?? '', deviceId: right.device_id ?? '', untilMs: right.until_ms ?? 0 }
    if (known.failures !== failures || known.isUnknown !== isUnknown)
      await redemptions.lease(key, lease, { failures, isUnknown })
    return state
  }
  const lease = right && isOpen && !leaseEnded && key.purchaseId !== '' ? await redemptions.unusedLease(key) : undefined
  if (lease)
    await redemptions.lease(
      key,
      { nonce: lease.nonce, deviceId: lease.device_id, untilMs: lease.exp * 1_000 + LEASE_GUARD_MS },
      { failures, isUnknown },
    )
  else if (effective) {
    const isSame =
      right?.state === 'used' &&
      right.redemption_id === effective.redemptionId &&
      right.nonce === effective.nonce &&
      right.failures === failures
    const known = isSame ? right.outcome : null
    if (!isSame) await redemptions.use(key, effective, failures)
    if (effective.outcome !== null && effective.outcome !== known)
      await redemptions.storeOutcome(effective.redemptionId, key, effective.outcome)
  } else if (right) await redemptions.free(key, failures)
  return state
}

function useOf(row: Row<'redemption'>): UnitRedemption {
  return {
    redemptionId: row.redemption_id,
    nonce: row.nonce,
    source: row.source as UnitRedemption['source'],
    deviceId: row.device_id,
    atMs: row.at_ms,
    outcome: row.outcome as Outcome | null,
  }
}

const purchasesOf = preparedForMany((db, ids) =>
  db
    .selectFrom('purchase')
    .select(['purchase_id', 'store_id', 'status', 'security_tag_mode', 'security_tag_status'])
    .where('purchase_id', 'in', ids),
)
// A purchase may have thousands of units, so the database counts them.
const unitsOf = preparedForMany((db, ids) =>
  db
    .selectFrom('purchase_unit')
    .select((eb) => ['purchase_id', eb.fn.countAll<number>().as('units')])
    .where('purchase_id', 'in', ids)
    .groupBy('purchase_id'),
)
const usedOf = preparedForMany((db, ids) =>
  db
    .selectFrom('unit_right')
    .select([
      'purchase_id',
      'right_class',
      sql<number>`SUM(CASE WHEN returned_by IS NOT NULL THEN 1 ELSE 0 END)`.as('returned'),
      sql<number>`SUM(CASE WHEN returned_by IS NULL AND outcome = 'confirmed' THEN 1 ELSE 0 END)`.as('confirmed'),
    ])
    .where('purchase_id', 'in', ids)
    .where('state', '=', 'used')
    .whereRef('line_id', '<>', 'purchase_id')
    .groupBy(['purchase_id', 'right_class']),
)
/** Purchases whose receipt opened a barrier (`passOf`). */
const passesOf = preparedForMany((db, ids) =>
  db
    .selectFrom('unit_right')
    .select('purchase_id')
    .where('line_id', 'in', ids)
    .where('right_class', '=', 'exit')
    .where('state', '=', 'used')
    .where('outcome', '=', 'confirmed'),
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
 * status `UNLOADED` after all exits, or after its receipt opened a barrier.
 */
export async function settlePurchases(
  { db, emit }: { db: Db; emit: Call['emit'] },
  purchaseIds: readonly string[],
): Promise<void> {
  const purchases = await purchasesOf(db, purchaseIds)
  if (purchases.length === 0) return
  const units = new Map((await unitsOf(db, purchaseIds)).map((row) => [row.purchase_id, Number(row.units)]))
  const used = await usedOf(db, purchaseIds)
  const passed = new Set((await passesOf(db, purchaseIds)).map((row) => row.purchase_id))
  const countOf = (purchaseId: string) => units.get(purchaseId) ?? 0
  /** True if all units were confirmed or returned, and at least one was not returned. */
  const areAllOf = (purchaseId: string, rightClass: RightClass) => {
    const row = used.find((each) => each.purchase_id === purchaseId && each.right_class === rightClass)
    const [returned, confirmed, count] = [Number(row?.returned ?? 0), Number(row?.confirmed ?? 0), countOf(purchaseId)]
    return confirmed === count - returned && (returned === 0 || returned < count)
  }
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
    ({ purchase_id: id, status }) =>
      status === 'SUCCESS' && (passed.has(id) || (countOf(id) > 0 && areAllOf(id, 'exit'))),
  )
  await writeUnloaded(
    db,
    unloaded.map((p) => p.purchase_id),
  )
}
