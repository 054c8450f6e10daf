import { assert } from '../../../policy/assert.ts'
import { isAtLeast, type Package } from '../../platform/foundation/packages.ts'
import type { StoreRow } from '../../platform/persistence/tables/stores.ts'
import { findStore } from '../../platform/stores/queries.ts'
import { earn, returnReversed, openEarnings, deduct, type Scope } from './ledger.ts'
import { earnedByPurchase, openProgram } from './program.ts'
import { activePrograms, findEarned, findProgram } from './queries.ts'

/** A paid purchase of scan and go, or an order that was picked up. */
export interface PaidTransaction {
  transactionId: string
  userId: string | null
  totalCent: number
  source: 'scan_and_go' | 'click_collect'
}

/** Events that `earnAutomatically` emits. */
export const EARNING_EVENTS = [
  'loyalty.enrollment',
  'loyalty.points_earned',
  'loyalty.reward_unlocked',
  'loyalty.tier_changed',
] as const

/**
 * Credits a paid transaction in the store's programs. Ignores programs whose rules do not allow a credit, because an
 * error would make the payment fail.
 */
export async function earnAutomatically(
  scope: Scope,
  store: StoreRow,
  { transactionId, userId, totalCent, source }: PaidTransaction,
): Promise<void> {
  if (userId === null || !isAtLeast(store.package as Package, 'GO')) return
  for (const row of await activePrograms(scope.db, store.store_id)) {
    const program = openProgram(row, store)
    const units = program.methods.includes(source) ? earnedByPurchase(program, totalCent) : 0
    if (units === 0) continue
    if (await findEarned(scope.db, row.program_id, transactionId)) continue
    await earn(scope, program, { userId, units, source, transactionId })
  }
}

/** Events that `adjustEarnings` emits. */
export const ADJUSTMENT_EVENTS = ['loyalty.reward_unlocked', 'loyalty.tier_changed'] as const

/** A transaction that was refunded in whole or in part. */
export interface RefundedTransaction {
  tenant: string
  transactionId: string
  /** Amount that the customer still pays, cents; 0 after a full refund. */
  remainingCent: number
  totalCent: number
}

/**
 * Adjusts the earnings of a refunded transaction to the amount that the customer still pays. Reverses points, or
 * credits reversed points again after a refund failed. If a purchase was partly refunded before it earned points, only
 * later refunds reduce the earning. Stamps stay until the whole amount is refunded.
 */
export async function adjustEarnings(
  scope: Scope,
  { tenant, transactionId, remainingCent, totalCent }: RefundedTransaction,
): Promise<void> {
  for (const { entry, reversed } of await openEarnings(scope, tenant, transactionId)) {
    const row = await findProgram(scope.db, tenant, entry.program_id)
    const store = row && (await findStore(scope.db, row.store_id))
    assert(row && store, `program ${entry.program_id} is gone`)
    const program = openProgram(row, store)
    const ofCent = entry.earned_on_cent ?? totalCent
    const retained =
      remainingCent <= 0 || ofCent <= 0
        ? 0
        : program.type === 'stamps'
          ? entry.amount
          : Math.floor((entry.amount * Math.min(remainingCent, ofCent)) / ofCent)
    const excess = entry.amount - reversed - retained
    if (excess >= 0) await deduct(scope, program, entry.user_id, 'reverse', excess, entry.entry_id)
    else await returnReversed(scope, program, entry, Math.min(-excess, reversed))
  }
}
