/** Statuses of an order and their moves (ADR 0007). `picked_up` and `cancelled` are final. */
export const ORDER_STATUSES = ['pending', 'confirmed', 'preparing', 'ready', 'picked_up', 'cancelled'] as const
export type OrderStatus = (typeof ORDER_STATUSES)[number]

const MOVES: Record<OrderStatus, readonly OrderStatus[]> = {
  pending: ['confirmed', 'cancelled'],
  confirmed: ['preparing', 'ready', 'cancelled'],
  preparing: ['ready', 'cancelled'],
  ready: ['picked_up', 'cancelled'],
  picked_up: [],
  cancelled: [],
}

/** Statuses in which the order can still be picked up. */
export const OPEN_STATUSES: readonly OrderStatus[] = ORDER_STATUSES.filter((status) => MOVES[status].length > 0)

/** Statuses that `updateClickCollectStatus` accepts. The specification has two names for `confirmed`. */
export const STATUS_NAMES = ['accepted', 'confirmed', 'preparing', 'ready', 'picked_up', 'cancelled'] as const
export type StatusName = (typeof STATUS_NAMES)[number]

/** Maps `accepted` to `confirmed`. */
export function statusOf(name: StatusName | 'pending'): OrderStatus {
  return name === 'accepted' ? 'confirmed' : name
}

/** Valid next statuses. */
export function nextOrderStatuses(from: OrderStatus): readonly OrderStatus[] {
  return MOVES[from]
}

/** True if the order cannot move any more. */
export function isFinal(status: OrderStatus): boolean {
  return MOVES[status].length === 0
}
