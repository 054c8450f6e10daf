import { earnAutomatically } from '../../shop/loyalty/ledger.ts'
import { notFound, precondition } from '../../platform/foundation/failure.ts'
import { eurosOf, iso } from '../../platform/operations/fields.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { notifyOfOrder } from '../../shop/push/queue.ts'
import { consumeStock, releaseStock } from '../../shop/stock/reserve.ts'
import { extendReservations } from '../../shop/stock/queries.ts'
import { releaseItems, handOverItems, replaceReservedItems } from './reserved-items.ts'
import {
  isFinal,
  nextOrderStatuses,
  type OrderStatus,
  orderInLocker,
  updateOrder,
  isPickupCode,
} from '../../shop/pickup-orders/queries.ts'
import type { TagLists } from '../../protection/items/item-queries.ts'
import { recallsIn } from '../../protection/items/recalls.ts'
import { hasRecalledGoods } from '../../protection/recalls/publish-recalls.ts'
import { revokeTokens } from '../../protection/leases/token-revocations.ts'
import { deviceFacts, findDevice } from '../../protection/store-facts/device-queries.ts'
import { reservedUntil, stockReservedUntil } from './submit-order.ts'

interface Move extends TagLists {
  to: OrderStatus
  reason?: string | undefined
  /** Code that the customer presents; checked if sent. */
  pickupCode?: string | undefined
  paid?: boolean | undefined
  /** Locker in which the goods wait, with `ready`. */
  lockerDeviceId?: string | undefined
  /** New estimate, ms since 1970. */
  estimatedMs?: number | undefined
}

/** The customer receives a push notification after a move to these statuses (specification, States). */
const NOTIFIED_STATUSES: ReadonlySet<OrderStatus> = new Set(['confirmed', 'ready', 'cancelled'])

/** Statuses in which the goods go to the customer: recalled goods do not. */
const HANDED_OVER: ReadonlySet<OrderStatus> = new Set(['ready', 'picked_up'])

/** Moves an order with its stock and its tagged items. Throws 409 with `allowedNext` for an invalid move. */
export async function moveOrder(
  call: Call,
  order: Row<'pickup_order'>,
  store: Row<'store'>,
  move: Move,
): Promise<Row<'pickup_order'>> {
  const { db, nowMs } = call
  const { to, reason, pickupCode, paid, lockerDeviceId, estimatedMs = order.estimated_ms } = move
  const from = order.status as OrderStatus
  if (!nextOrderStatuses(from).includes(to)) {
    throw precondition('illegal_order_move', `an order with status ${from} cannot become ${to}`, {
      allowedNext: nextOrderStatuses(from),
    })
  }
  if (pickupCode !== undefined && !isPickupCode(order, pickupCode))
    throw precondition(
      'pickup_code_wrong',
      'this is not the pick-up code of the order: ask the customer for the code again',
    )
  if (lockerDeviceId !== undefined) await assertFreeLocker(call, store, lockerDeviceId)
  if (to === 'cancelled') {
    await releaseItems(call, order)
    await releaseStock(db, order.order_id)
  } else await replaceReservedItems(call, order, move)
  if (HANDED_OVER.has(to) && (await hasRecalledGoods(db, order, await recallsIn(db, order))))
    throw precondition('recalled', 'goods of this order are recalled: set them aside, and pick other ones or cancel it')
  if (to === 'picked_up') {
    await handOverItems(call, order)
    await consumeStock(db, order.order_id)
    await earnAutomatically(call, store, {
      transactionId: order.order_id,
      userId: order.user_id,
      totalCent: order.total_cent,
      source: 'click_collect',
    })
  }
  // A token for the locker names no order, and the next order may wait in the same locker.
  if (order.locker_device_id !== null)
    await revokeTokens(call, { kind: 'locker', deviceId: order.locker_device_id }, `its order became ${to}`)
  if (estimatedMs !== order.estimated_ms) await extendReservations(db, order.order_id, stockReservedUntil(estimatedMs))
  const moved = await updateOrder(db, order, {
    status: to,
    estimated_ms: estimatedMs,
    expires_ms: isFinal(to) ? null : reservedUntil(estimatedMs),
    updated_ms: nowMs,
    ...(to === 'cancelled' && { reason: reason ?? null }),
    ...(to === 'picked_up' && { picked_up_ms: nowMs }),
    ...(paid !== undefined && { paid: paid ? 1 : 0 }),
    ...(lockerDeviceId !== undefined && { locker_device_id: lockerDeviceId }),
  })
  emitMove(call, moved, from)
  if (NOTIFIED_STATUSES.has(to)) await notifyOfOrder(call, 'customer', moved)
  return moved
}

/**
 * Throws unless the device is a cabinet of the store that holds no other order. A `self_service` cabinet also opens for
 * receipts, so it is no locker.
 */
async function assertFreeLocker({ db }: Call, store: Row<'store'>, deviceId: string): Promise<void> {
  const row = await findDevice(db, store.tenant, deviceId)
  if (row?.store_id !== store.store_id) throw notFound('device')
  const device = deviceFacts(row, store)
  const fault =
    (device.deviceType !== 'cabinet_unlocker' && 'it is no cabinet_unlocker') ||
    (device.revoked && 'it is out of service') ||
    (device.workflowType === 'self_service' && 'its workflow is self_service') ||
    ((await orderInLocker(db, deviceId)) && 'it is the locker of another order')
  if (fault) throw precondition('locker_unavailable', `the device cannot be the locker of this order: ${fault}`)
}

function emitMove({ emit, nowMs }: Call, order: Row<'pickup_order'>, previousStatus: OrderStatus): void {
  const { order_id: orderId, store_id: storeId, user_id: userId, status } = order
  const about = { orderId, storeId, userId, estimatedPickupAt: iso(order.estimated_ms) }
  emit({ type: 'clickcollect.status_changed', storeId, data: { ...about, previousStatus, status } })
  if (status !== 'picked_up') return
  emit({
    type: 'clickcollect.picked_up',
    storeId,
    data: { ...about, pickedUpAt: iso(nowMs), total: eurosOf(order.total_cent), currency: order.currency },
  })
}
