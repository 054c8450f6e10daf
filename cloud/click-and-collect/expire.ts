import { newId } from '../../policy/ids.ts'
import type { KeyCaller, Tenant } from '../operations/caller.ts'
import type { Services } from '../operations/operation.ts'
import { performTask } from '../operations/perform.ts'
import type { Database } from '../persistence/database.ts'
import { findStore } from '../stores/queries.ts'
import { moveOrder } from './move-order.ts'
import { updateClickCollectStatus } from './operations.ts'
import { isFinal, type OrderStatus } from './order-state.ts'
import { findOrder, overdueOrders } from './queries.ts'

const AT_ONCE = 100

/** Cancels the orders that nobody fetched in time, each in a transaction of its own. Safe to run twice and in several processes. */
export async function cancelOverdueOrders(database: Database, services: Services): Promise<void> {
  for (const { order_id, tenant } of await overdueOrders(database.reads, services.platform.clock.wall(), AT_ONCE)) {
    const who = { operation: updateClickCollectStatus, caller: clockCaller(tenant as Tenant), requestId: newId('req', services.platform) }
    await performTask(who, database, services, async (call) => {
      const order = await findOrder(call.db, tenant, order_id)
      const store = order && (await findStore(call.db, order.store_id))
      if (!order || !store || isFinal(order.status as OrderStatus) || order.expires_ms === null || order.expires_ms > call.nowMs) return
      await moveOrder(call, order, store, { to: 'cancelled', reason: 'expired' })
      call.changed(order_id)
    })
  }
}

/** Who acts when time runs out: nobody with a key, within the order's own tenant. */
function clockCaller(tenant: Tenant): KeyCaller {
  const [accountId = '', mode] = tenant.split('.')
  return { kind: 'secret', keyId: 'pickup-expiry', accountId, mode: mode === 'live' ? 'live' : 'test', tenant, storeIds: null, package: 'PRIME' }
}
