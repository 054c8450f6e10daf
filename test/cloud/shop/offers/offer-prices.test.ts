import { afterAll, beforeAll, expect, it } from 'vitest'
import { priceLines } from '../../../../cloud/sales/checkout/price-lines.ts'
import { findStore } from '../../../../cloud/platform/stores/queries.ts'
import { startTestCloud, type Json, type TestCloud } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { liveStores } from '../../../support/live-store.ts'

const COFFEE = { ean: '4152894103278', name: 'Filterkaffee', priceCent: 899 }
const CHOCOLATE = { ean: '4149563104889', name: 'Zartbitterschokolade', priceCent: 229 }
const APPLES = { ean: '2957770000007', name: 'Äpfel lose', priceCent: 349 }
const CHEESE = { ean: '2810270000000', name: 'Gouda am Stück', priceCent: 1_290 }
const DAY_MS = 86_400_000

onEveryDatabase('offers at checkout', (kind) => {
  let cloud: TestCloud
  const at = (days: number) => new Date(cloud.platform.clock.wall() + days * DAY_MS).toISOString()
  const at7 = () => ({ title: 'Herbstwochen', validFrom: at(-1), validTo: at(7) })
  beforeAll(async () => {
    cloud = await startTestCloud(kind)
  })
  afterAll(async () => {
    expect(cloud.errors).toEqual([])
    await cloud.stop()
  })

  it('prices baskets by the lowest active offer in the store', async () => {
    const own = await cloud.key('secret', 'live', { account: `Basket ${kind}`, package: 'PRIME' })
    const [here, there] = await liveStores(cloud, own, { count: 2, products: [COFFEE, CHOCOLATE] })
    const offer = (price: number, fields: Json = {}) =>
      cloud.ok(own, 'createOffer', {
        ...at7(),
        storeIds: [here],
        products: [{ ean: COFFEE.ean, discountPrice: price }],
        ...fields,
      })
    const pay = async (storeId: string | undefined, ean = COFFEE.ean) => {
      const { reads } = cloud.db.database
      const store = await findStore(reads, storeId ?? '')
      if (!store) throw new Error('no store')
      const product = await reads
        .selectFrom('product')
        .select('product_id')
        .where('tenant', '=', store.tenant)
        .where('ean', '=', ean)
        .executeTakeFirstOrThrow()
      const [byEan, byId] = await priceLines(
        reads,
        store,
        [
          { ean, quantity: 1 },
          { productId: product.product_id, quantity: 2 },
        ],
        cloud.platform.clock.wall(),
      )
      expect(byEan?.priceCent).toBe(byId?.priceCent)
      return byEan?.priceCent
    }
    expect(await pay(here)).toBe(899)
    const seven = await offer(7)
    await offer(5, { validFrom: at(1) })
    await offer(4, { validFrom: at(-3), validTo: at(-1) })
    await offer(9)
    expect([await pay(here), await pay(there), await pay(here, CHOCOLATE.ean)]).toEqual([700, 899, 229])
    const store = await findStore(cloud.db.database.reads, here ?? '')
    const stated = (priceUnit: number) =>
      store &&
      priceLines(
        cloud.db.database.reads,
        store,
        [{ ean: COFFEE.ean, quantity: 1, priceUnit }],
        cloud.platform.clock.wall(),
      )
    await expect(stated(899)).rejects.toMatchObject({
      extras: { reason: 'price_changed', details: [{ path: 'items[0].priceUnit' }] },
    })
    expect(await stated(700)).toMatchObject([{ priceCent: 700, priceOrigin: 'catalogue' }])
    const six = await offer(6, { storeIds: [here, there] })
    expect([await pay(here), await pay(there)]).toEqual([600, 600])
    await cloud.ok(own, 'updateOffer', { offerId: six.offerId, storeIds: [there] })
    expect([await pay(here), await pay(there)]).toEqual([700, 600])
    await cloud.ok(own, 'updateOffer', { offerId: seven.offerId, products: [{ ean: COFFEE.ean, discountPrice: 6.5 }] })
    await cloud.ok(own, 'updateOffer', { offerId: six.offerId, validTo: at(-0.5) })
    expect([await pay(here), await pay(there)]).toEqual([650, 899])
    await cloud.ok(own, 'deleteOffer', { offerId: seven.offerId })
    expect(await pay(here)).toBe(899)
  })

  it('lowers the price per kilogram, but not the price on a label', async () => {
    const own = await cloud.key('secret', 'live', { account: `Scale ${kind}`, package: 'PRIME' })
    const [here = ''] = await liveStores(cloud, own, { products: [APPLES, CHEESE] })
    const store = await findStore(cloud.db.database.reads, here)
    const price = async () => {
      const lines = store
        ? await priceLines(
            cloud.db.database.reads,
            store,
            [
              { ean: '2957776004085', quantity: 1 },
              { ean: '2810275005024', quantity: 1 },
            ],
            cloud.platform.clock.wall(),
          )
        : []
      return lines.map((line) => [line.priceCent, line.weighed?.kgPriceCent])
    }
    expect(await price()).toEqual([
      [142, 349],
      [502, null],
    ])
    const products = [
      { ean: APPLES.ean, discountPrice: 2.99 },
      { ean: CHEESE.ean, discountPrice: 1 },
    ]
    await cloud.ok(own, 'createOffer', { ...at7(), storeIds: [here], products })
    expect(await price()).toEqual([
      [122, 299],
      [502, null],
    ])
  })
})
