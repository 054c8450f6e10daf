import { RECALLED } from '../../../policy/item-status.ts'
import type { ItemStatus } from '../../../policy/vocabulary.ts'
import type { Call } from '../../platform/operations/operation.ts'
import { orderOfCode } from '../../shop/pickup-orders/order-of-code.ts'
import { hasRecalledGoods } from '../recalls/recalled-sales.ts'
import { viewLease } from '../leases/leases.ts'
import { requestFacts, type AuthorizationRequest } from './authorization-request.ts'
import type { AuthorizationTarget } from './authorization-target.ts'

/**
 * Loads the order of a presented pick-up code. The code opens only the locker in which the goods of its order wait (ADR
 * 0007). It uses no right, because the goods are reserved until staff or a program confirm the pick-up.
 */
export async function loadLockerTarget(
  call: Call,
  request: AuthorizationRequest,
  pickupCode: string,
): Promise<AuthorizationTarget> {
  const { context, action } = request
  const device = context.device?.row
  const order = device && (await orderOfCode(call.db, context.caller.tenant, device.store_id, pickupCode))
  const isPickedUp = order?.status === 'picked_up'
  const lease =
    device && !isPickedUp
      ? await viewLease(call, undefined, device, action, () => false)
      : { right: isPickedUp ? ('used' as const) : ('free' as const) }
  const itemStatus: ItemStatus | null = order ? (isPickedUp ? 'picked_up' : 'reserved_bopis') : null
  const facts = {
    ...requestFacts(request),
    token: device && !order ? ('token_invalid' as const) : undefined,
    // The code alone opens the locker. An operator opens it by the goods.
    hasOperator: false,
    item: order
      ? {
          status: order.paid === 1 ? ('paid' as const) : ('reserved_bopis' as const),
          category: '',
          brand: '',
          priceCent: order.total_cent,
          ...((await hasRecalledGoods(call.db, order)) && RECALLED),
        }
      : null,
    identifiedBy: [],
    right: lease.right,
    locker: order && order.locker_device_id === device?.device_id ? ('own' as const) : ('other' as const),
  }
  return { units: [{ facts, lease }], isKnown: order !== undefined, itemStatus, lineId: null }
}
