import { newId } from '../../../policy/ids.ts'
import { systemCaller, type Tenant } from '../../platform/foundation/caller.ts'
import { processEach } from '../../platform/operations/process-each.ts'
import type { Services } from '../../platform/operations/operation.ts'
import { performTask } from '../../platform/operations/perform.ts'
import type { Database } from '../../platform/persistence/database.ts'
import { endMoves } from './move-device.ts'
import { updateDevice } from './update-device.ts'

/** Ends device moves whose former agent did not answer, after the tokens of the device have expired. */
export function endDueMoves(database: Database, services: Services): Promise<void> {
  const seen = new Set<string>()
  return processEach(services, {
    job: 'moving devices',
    async read(limit) {
      const stores = await database.reads
        .selectFrom('device')
        .select(['store_id', 'tenant'])
        .distinct()
        .where('moving_to', 'is not', null)
        .where('store_id', 'not in', ['', ...seen])
        .orderBy('store_id')
        .limit(limit)
        .execute()
      for (const { store_id: storeId } of stores) seen.add(storeId)
      return stores
    },
    process: ({ store_id: storeId, tenant }) => {
      const who = {
        operation: updateDevice,
        caller: systemCaller(tenant as Tenant, 'moving devices'),
        requestId: newId('req', services.platform),
      }
      return performTask(who, database, services, async (call) => {
        if ((await endMoves(call, storeId)) > 0) call.changed(storeId)
      })
    },
  })
}
