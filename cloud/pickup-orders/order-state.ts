/** Where an order may go from each status (decisions §7). `picked_up` and `cancelled` are final. */
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

/** Statuses in which somebody may still come. */
export const OPEN_STATUSES: readonly OrderStatus[] = ORDER_STATUSES.filter((status) => MOVES[status].length > 0)

/** What `updateClickCollectStatus` takes: both vocabularies of the specification, `accepted` being `confirmed`. */
export const STATUS_NAMES = ['accepted', 'confirmed', 'preparing', 'ready', 'picked_up', 'cancelled'] as const
export type StatusName = (typeof STATUS_NAMES)[number]

/** The status that a word of either vocabulary means. */
export function statusOf(name: StatusName | 'pending'): OrderStatus {
  return name === 'accepted' ? 'confirmed' : name
}

/** The statuses that an order may move to. */
export function nextOrderStatuses(from: OrderStatus): readonly OrderStatus[] {
  return MOVES[from]
}

/** Whether nothing can happen to the order any more. */
export function isFinal(status: OrderStatus): boolean {
  return MOVES[status].length === 0
}
