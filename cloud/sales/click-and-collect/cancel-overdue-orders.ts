import { newId } from '../../../policy/ids.ts'
import { systemCaller, type Tenant } from '../../platform/foundation/caller.ts'
import type { Services } from '../../platform/operations/operation.ts'
import { processEach } from '../../platform/operations/process-each.ts'
import { performTask } from '../../platform/operations/perform.ts'
import type { Database } from '../../platform/persistence/database.ts'
import { findStore } from '../../platform/stores/queries.ts'
import { moveOrder } from './move-order.ts'
import { updateClickCollectStatus } from './operations.ts'
import { isFinal, type OrderStatus, findOrder, overdueOrders } from '../../shop/pickup-orders/queries.ts'

/**
 * Cancels orders that were not picked up in time, each in its own transaction. Several processes may run this at the
 * same time.
 */
export function cancelOverdueOrders(database: Database, services: Services): Promise<void> {
  return processEach(services, {
    job: 'overdue orders',
    read: (limit, failed) => overdueOrders(database.reads, services.platform.clock.wall(), { limit, offset: failed }),
    process: ({ order_id, tenant }) => cancelOverdue(database, services, order_id, tenant as Tenant),
  })
}

function cancelOverdue(database: Database, services: Services, orderId: string, tenant: Tenant): Promise<void> {
  const who = {
    operation: updateClickCollectStatus,
    caller: systemCaller(tenant, 'pickup-expiry'),
    requestId: newId('req', services.platform),
  }
  return performTask(who, database, services, async (call) => {
    const order = await findOrder(call.db, tenant, orderId)
    const store = order && (await findStore(call.db, order.store_id))
    if (
      !order ||
      !store ||
      isFinal(order.status as OrderStatus) ||
      order.expires_ms === null ||
      order.expires_ms > call.nowMs
    )
      return
    await moveOrder(call, order, store, { to: 'cancelled', reason: 'expired' })
    call.changed(orderId)
  })
}
