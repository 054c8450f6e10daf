import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { copyDatabase } from '../../../../host/database-copy/copy.ts'
import { realPlatform } from '../../../../host/platform.ts'
import { OPERATION_TABLE } from '../../../../cloud/service/operation-table.ts'
import { openDatabase } from '../../../../cloud/platform/persistence/open-database.ts'
import type { ReplicaState } from '../../../../cloud/platform/persistence/database.ts'
import {
  startPostgres,
  whyNoPostgres,
  type PostgresServer,
  type Standby,
} from '../../../verification/kills/postgres-server.ts'
import type { Json } from '../../../support/cloud.ts'
import { asAdmin } from '../../../support/databases.ts'
import { eventually } from '../../../support/journey.ts'
import { newEan, openShop, type Shop } from '../../../support/shop.ts'
import { EXTENDED } from '../../../support/extended.ts'

const missing = whyNoPostgres()
const MAX_LAG_MS = 2_000

describe.skipIf(missing)(`a replica${missing ? ` (skipped: ${missing})` : ''}`, EXTENDED, () => {
  let primary: PostgresServer | undefined
  let standby: Standby
  let shop: Shop
  let states: ReplicaState[]
  // The age of the data grows only when the test says so: on a busy machine a healthy standby lags, too.
  let elapsedMs = 0
  const waitTooLong = () => void (elapsedMs += MAX_LAG_MS + 1)

  beforeAll(async () => {
    primary = (await startPostgres()) as PostgresServer
    const { url } = primary
    shop = await openShop('sqlite')
    await copyDatabase({
      file: (shop.cloud.db.location as { file: string }).file,
      url,
      begin: () => 'copy',
      complete: () => undefined,
    })
    standby = await primary.startStandby()
    // Commits must not wait for a standby that is paused.
    await asAdmin(url, 'ALTER SYSTEM RESET synchronous_standby_names')
    await asAdmin(url, 'SELECT pg_reload_conf()')
    const { clock, timers } = realPlatform()
    states = []
    const replica = {
      url: standby.url,
      maxLagMs: MAX_LAG_MS,
      beatMs: 50,
      timers,
      onState: (state: ReplicaState) => void states.push(state),
    }
    shop.cloud.db.again = () =>
      openDatabase({ url, clock: { ...clock, elapsed: () => elapsedMs }, timers, replica }, (failure) => {
        throw failure
      })
    await shop.cloud.restart()
    await isState('used')
  })
  afterEach(() => {
    expect(shop.cloud.errors).toEqual([])
  })
  afterAll(async () => {
    await shop?.stop()
    await standby?.stop()
    await primary?.stop()
  })

  const status = () => shop.cloud.db.database.replica?.status()
  const isState = (state: ReplicaState) => eventually(`the replica: ${state}`, async () => status()?.state === state)
  const pauseReplica = () => asAdmin(standby.url, 'SELECT pg_wal_replay_pause()')
  const resumeReplica = () => asAdmin(standby.url, 'SELECT pg_wal_replay_resume()')
  const insert = async (): Promise<{ productId: string; name: string }> => {
    const name = `Replikat${newEan()}`
    const { storeId } = shop
    const { productId } = await shop.ok('insertProduct', { storeId, ean: newEan(), name, price: 1, vat: 7 })
    return { productId, name }
  }
  const search = async (name: string): Promise<string[]> => {
    const { products } = await shop.ok('searchProducts', { storeId: shop.storeId, q: name })
    return products.map((product: Json) => product.productId)
  }

  it('answers searches, while decisions and single products come from the primary', async () => {
    const first = await insert()
    await eventually('the product', async () => (await search(first.name)).length === 1)
    await pauseReplica()
    const { productId, name } = await insert()
    expect(await search(name)).toEqual([])
    expect(await shop.ok('fetchProduct', { productId })).toMatchObject({ productId })
    const sold = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
    const deviceId = shop.devices.pos_deactivator
    expect(await shop.ok('verifySecurityTagDeactivation', { purchaseId: sold.transactionId, deviceId })).toMatchObject({
      deactivationAuthorized: true,
    })

    // The primary answers what the replica would refuse: it does not have this store yet.
    const { storeId } = await shop.ok('insertStore', {
      companyName: 'Hafenkante GmbH',
      tradingName: 'Neu',
      address: { street: 'Am Speicher 12', city: 'Hamburg', zip: '20457', country: 'DE' },
      phone: '+4940555010100',
    })
    expect(await shop.ok('fetchProducts', { storeId })).toMatchObject({ products: [] })

    // After the limit the primary answers everything.
    waitTooLong()
    await isState('late')
    expect(await search(name)).toEqual([productId])
    await eventually('the report', async () => states.at(-1) === 'late')
    const ready = await shop.cloud.get('/readyz')
    expect(ready.body.replica).toMatchObject({ state: 'late', lagMs: expect.any(Number) })
    expect(ready.body.replica.lagMs).toBeGreaterThan(MAX_LAG_MS)

    await resumeReplica()
    await isState('used')
    expect(await search(name)).toEqual([productId])
    expect((await shop.cloud.get('/readyz')).body.replica).toMatchObject({ state: 'used' })
    expect(states).toEqual(['late', 'used'])
  })

  it('is left out while it is away, also as a promoted server', async () => {
    await standby.restart('immediate', async () => {
      const { name, productId } = await insert()
      expect(await search(name)).toEqual([productId])
      await isState('away')
    })
    await isState('used')
    // A promoted standby no longer follows the primary, so its data becomes old.
    await standby.promote()
    waitTooLong()
    await isState('late')
    const { name, productId } = await insert()
    expect(await search(name)).toEqual([productId])
    await eventually('the report', async () => states.at(-1) === 'late')
    expect(states).toEqual(['late', 'used', 'away', 'used', 'late'])
  })
})

describe('operations that may read from a replica', () => {
  it('are catalogue pages, searches, reports and exports', () => {
    const stale = [...OPERATION_TABLE.values()].filter(({ mayBeStale }) => mayBeStale)
    expect(stale.filter(({ changes }) => changes)).toEqual([])
    expect(stale.map(({ name }) => name).toSorted()).toEqual([
      'exportSalesData',
      'fetchActiveOffers',
      'fetchAnalytics',
      'fetchAuditLog',
      'fetchProducts',
      'getLoyaltyAnalytics',
      'searchProducts',
      'simulateProtectionPolicy',
    ])
  })
})
