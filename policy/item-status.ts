import { ITEM_STATUSES, type ItemStatus } from './vocabulary.ts'

/**
 * Allowed moves of an item's status (ADR items). Staff may put any item on hold. When staff end a hold, they may set any
 * other status.
 */
const MOVES: Record<ItemStatus, readonly ItemStatus[]> = {
  sellable: ['paid', 'reserved_bopis', 'transfer_in_transit', 'exception_hold'],
  paid: ['returned', 'cancelled', 'exception_hold'],
  reserved_bopis: ['picked_up', 'sellable', 'exception_hold'],
  picked_up: ['returned', 'exception_hold'],
  returned: ['sellable', 'exception_hold'],
  transfer_in_transit: ['sellable', 'exception_hold'],
  cancelled: ['sellable', 'exception_hold'],
  exception_hold: ITEM_STATUSES.filter((status) => status !== 'exception_hold'),
}

/** Statuses that may follow `from`. */
export function nextItemStatuses(from: ItemStatus): readonly ItemStatus[] {
  return MOVES[from]
}

/** True if the move is allowed. */
export function mayItemMove(from: ItemStatus, to: ItemStatus): boolean {
  return MOVES[from].includes(to)
}

/** True for goods that were sold, and may come back at a till. Goods that are on hold for staff may not. */
export function isSold(status: ItemStatus | string | undefined): boolean {
  return status === 'paid' || status === 'picked_up'
}

/** Statuses that an item may be registered with. */
export const FIRST_ITEM_STATUSES = [
  'sellable',
  'returned',
  'transfer_in_transit',
  'exception_hold',
] as const satisfies readonly ItemStatus[]

/** Facts about goods of a recall: they count as `exception_hold`, whatever their status is (ADR releases). */
export const RECALLED = { status: 'exception_hold', recalled: true } as const

type GateBehaviour = 'alarm' | 'pass' | 'alarm_and_staff'

/** Reaction of a gate to a leaving item (specification, itemStatus table). */
export const GATE_BEHAVIOUR: Record<ItemStatus, GateBehaviour> = {
  sellable: 'alarm',
  paid: 'pass',
  reserved_bopis: 'alarm',
  picked_up: 'pass',
  returned: 'alarm',
  transfer_in_transit: 'pass',
  cancelled: 'alarm',
  exception_hold: 'alarm_and_staff',
}
