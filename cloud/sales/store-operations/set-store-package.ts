import { z } from 'zod'
import { lowerAccountPackage, raiseAccountPackage } from '../registrations/registrations.ts'
import { type Tenant, isAtLeast, type Package } from '../../platform/foundation/caller.ts'
import { notFound } from '../../platform/foundation/failure.ts'
import { Id, Success } from '../../platform/operations/fields.ts'
import { operation } from '../../platform/operations/operation.ts'
import { defaultFeatures } from '../../platform/stores/make-store.ts'
import { findStore, updateStoreRow } from '../../platform/stores/queries.ts'
import { Store, toStore } from '../../platform/stores/schema.ts'
import { AnyCasePackage } from '../../platform/stores/store-input.ts'

export const setStorePackage = operation({
  name: 'setStorePackage',
  area: 'stores',
  minimumPackage: 'DISCOVER',
  roles: [],
  summary: 'Sets the package of any store immediately. Administrators only.',
  description:
    'The package of the account is the highest package of its live stores. Switches on features that the new ' +
    'package adds, and switches off features that it lacks.',
  callers: ['admin'],
  changes: true,
  request: z.strictObject({ storeId: Id, package: AnyCasePackage }),
  response: Store.extend(Success),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', package: 'grow' },
  async run(call, { storeId, package: wanted }) {
    const store = await findStore(call.db, storeId)
    if (!store) throw notFound('store')
    const tenant = store.tenant as Tenant
    call.changed(storeId, tenant)
    const before = store.package as Package
    if (before === wanted) return { success: true as const, ...toStore(store) }
    const had = defaultFeatures(tenant, before)
    const has = defaultFeatures(tenant, wanted)
    // Switches on each feature that the new package adds, and switches off each feature that the new package removes.
    // For other features, keeps the choice of the merchant.
    const set = {
      package: wanted,
      has_scan_and_go: had.has_scan_and_go === has.has_scan_and_go ? store.has_scan_and_go : has.has_scan_and_go,
      has_offers: had.has_offers === has.has_offers ? store.has_offers : has.has_offers,
    }
    await updateStoreRow(call.db, storeId, set)
    if (tenant.endsWith('.live')) {
      const accountId = tenant.slice(0, -'.live'.length)
      if (isAtLeast(wanted, before)) await raiseAccountPackage(call.db, accountId, wanted)
      else await lowerAccountPackage(call.db, accountId, before)
    }
    return { success: true as const, ...toStore({ ...store, ...set }) }
  },
})
