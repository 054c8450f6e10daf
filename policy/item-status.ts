import { ITEM_STATUSES, type ItemStatus } from './vocabulary.ts'

/** Where an item may go from each status (ADR 0010); staff may put any item on hold and take it off again. */
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

/** The statuses that an item may move to. */
export function nextItemStatuses(from: ItemStatus): readonly ItemStatus[] {
  return MOVES[from]
}

/** Whether the state machine knows this move. */
export function mayItemMove(from: ItemStatus, to: ItemStatus): boolean {
  return MOVES[from].includes(to)
}

/** Statuses in which a registration may begin an item's life. */
export const FIRST_ITEM_STATUSES = [
  'sellable',
  'returned',
  'transfer_in_transit',
  'exception_hold',
] as const satisfies readonly ItemStatus[]

export type GateBehaviour = 'alarm' | 'pass' | 'alarm_and_staff'

/** What a gate does about a leaving item (specification, itemStatus table). */
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
