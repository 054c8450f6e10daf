import { z } from 'zod'
import {
  accountOf,
  isAtLeast,
  PACKAGES,
  PLATFORM_ROLE,
  type Package,
  type Tenant,
} from '../../platform/foundation/caller.ts'
import { notFound, precondition } from '../../platform/foundation/failure.ts'
import { Id, Success } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { defaultFeatures } from '../../platform/stores/make-store.ts'
import { findStore, packagesOfOthers, updateStoreRow } from '../../platform/stores/queries.ts'
import { Store, toStore } from '../../platform/stores/schema.ts'
import { AnyCasePackage } from '../../platform/stores/store-input.ts'
import { packageOfAccount } from '../registrations/registrations.ts'

/** The package of one store: what a change would do, and the change. Administrators of the cloud decide it. */

type Features = Pick<Row<'store'>, 'package' | 'has_scan_and_go' | 'has_offers'>

/**
 * The columns of the store under another package. Switches on each feature that the new package adds, and switches off
 * each that it removes. For other features, keeps the choice of the merchant.
 */
function featuresWith(store: Row<'store'>, wanted: Package): Features {
  if (store.package === wanted) return store
  const had = defaultFeatures(store.tenant, store.package as Package)
  const has = defaultFeatures(store.tenant, wanted)
  return {
    package: wanted,
    has_scan_and_go: had.has_scan_and_go === has.has_scan_and_go ? store.has_scan_and_go : has.has_scan_and_go,
    has_offers: had.has_offers === has.has_offers ? store.has_offers : has.has_offers,
  }
}

/**
 * The packages of the account before and after the change. A live store with a higher package raises it. If the store had
 * the package of the account, a lower one leaves the highest package of the live stores.
 */
async function accountPackages(
  { db }: Call,
  { tenant, store_id: storeId, package: had }: Row<'store'>,
  wanted: Package,
): Promise<{ before: Package; after: Package }> {
  const before = await packageOfAccount(db, accountOf(tenant))
  if (!tenant.endsWith('.live') || had === wanted) return { before, after: before }
  if (isAtLeast(wanted, had as Package)) return { before, after: isAtLeast(before, wanted) ? before : wanted }
  if (before !== had) return { before, after: before }
  const left = new Set([wanted as string, ...(await packagesOfOthers(db, tenant, storeId))])
  return { before, after: PACKAGES.findLast((name) => left.has(name)) ?? 'DISCOVER' }
}

async function storeNamed({ db }: Call, storeId: string): Promise<Row<'store'>> {
  const store = await findStore(db, storeId)
  if (!store) throw notFound('store')
  return store
}

const beforeAndAfter = <T extends z.ZodType>(value: T) => z.strictObject({ before: value, after: value })

export const simulateStorePackage = operation({
  name: 'simulateStorePackage',
  area: 'stores',
  minimumPackage: 'DISCOVER',
  roles: [PLATFORM_ROLE],
  summary: 'Says what another package would change in a store, and changes nothing. Administrators only.',
  description: 'Compares the features of the store and the package of the account. `setStorePackage` makes the change.',
  callers: ['admin'],
  changes: false,
  request: z.strictObject({
    storeId: Id,
    package: AnyCasePackage.optional().describe('Default: the present package, which changes nothing.'),
  }),
  response: z.strictObject({
    ...Success,
    storeId: z.string(),
    accountId: z.string(),
    tradingName: z.string(),
    mode: z.enum(['test', 'live']),
    package: beforeAndAfter(z.enum(PACKAGES)),
    hasScanAndGo: beforeAndAfter(z.boolean()),
    hasOffers: beforeAndAfter(z.boolean()),
    accountPackage: beforeAndAfter(z.enum(PACKAGES)).describe('Highest package of the live stores.'),
    stopsAgents: z
      .boolean()
      .describe('True if the cloud would refuse what agents and devices of the store ask: they need GROW.'),
  }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', package: 'grow' },
  async run(call, { storeId, package: chosen }) {
    const store = await storeNamed(call, storeId)
    const had = store.package as Package
    const wanted = chosen ?? had
    const after = featuresWith(store, wanted)
    const isLive = store.tenant.endsWith('.live')
    return {
      success: true as const,
      storeId,
      accountId: accountOf(store.tenant),
      tradingName: store.trading_name,
      mode: isLive ? ('live' as const) : ('test' as const),
      package: { before: had, after: wanted },
      hasScanAndGo: { before: store.has_scan_and_go === 1, after: after.has_scan_and_go === 1 },
      hasOffers: { before: store.has_offers === 1, after: after.has_offers === 1 },
      accountPackage: await accountPackages(call, store, wanted),
      stopsAgents: isLive && isAtLeast(had, 'GROW') && !isAtLeast(wanted, 'GROW'),
    }
  },
})

export const setStorePackage = operation({
  name: 'setStorePackage',
  area: 'stores',
  minimumPackage: 'DISCOVER',
  roles: [PLATFORM_ROLE],
  summary: 'Sets the package of any store immediately. Administrators only.',
  description:
    'The package of the account is the highest package of its live stores. Switches on features that the new ' +
    'package adds, and switches off features that it lacks. `simulateStorePackage` says before what changes.',
  callers: ['admin'],
  changes: true,
  refusals: ['package_changed'],
  request: z.strictObject({
    storeId: Id,
    package: AnyCasePackage,
    expectedPackage: AnyCasePackage.optional().describe(
      'The package that you saw. If the store has another one by now, the answer is 409 `package_changed`.',
    ),
  }),
  response: Store.extend(Success),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', package: 'grow' },
  async run(call, { storeId, package: wanted, expectedPackage }) {
    const store = await storeNamed(call, storeId)
    const tenant = store.tenant as Tenant
    call.changed(storeId, tenant)
    if (expectedPackage !== undefined && store.package !== expectedPackage)
      throw precondition('package_changed', `the store has ${store.package} by now, not ${expectedPackage}`)
    if (store.package === wanted) return { success: true as const, ...toStore(store) }
    const set = featuresWith(store, wanted)
    const { before, after } = await accountPackages(call, store, wanted)
    await updateStoreRow(call.db, storeId, set)
    if (after !== before)
      await call.db.updateTable('account').set({ package: after }).where('account_id', '=', accountOf(tenant)).execute()
    return { success: true as const, ...toStore({ ...store, ...set }) }
  },
})
