// @module-tag extended
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import { keysOf, loadKeyFiles } from '../../../../cloud/platform/authority/key-files.ts'
import { createCloud, type Cloud } from '../../../../cloud/cloud.ts'
import type { OutgoingHttp } from '../../../../cloud/platform/outgoing/outgoing-http.ts'
import type { Database } from '../../../../cloud/platform/persistence/database.ts'
import { secretFiles } from '../../../../host/secret-files.ts'
import type { Json } from '../../../support/cloud.ts'
import { openPaidStore, PRODUCT, type PaidStore } from '../../../support/paid-store.ts'
import { stopInVirtualTime } from '../../../support/receiver.ts'

const MINUTE = 60_000
const PURCHASES = 8
const OFFERS = 4

describe.skipIf(inject('postgresUrl') === '')('the jobs of three processes on one database', () => {
  let store: PaidStore
  /** Ids of the events that the processes delivered. */
  let delivered: string[]
  const others: { cloud: Cloud; database: Database }[] = []

  beforeEach(async () => {
    store = await openPaidStore('postgres')
    delivered = []
    const { cloud, platform } = store
    const { services } = cloud.cloud
    const { config, images, log, outgoing: http } = services
    const outgoing: OutgoingHttp = {
      ...http,
      send(request, signal) {
        const id = request.headers['webhook-id']
        if (id === undefined) return http.send(request, signal)
        delivered.push(id)
        return Promise.resolve({ status: 200, headers: {}, body: new Uint8Array(), isCut: false })
      },
    }
    Object.assign(services, { outgoing })
    for (let n = 0; n < 2; n++) {
      const database = await cloud.db.again()
      const keyFiles = await loadKeyFiles(keysOf(cloud.keyFolder), secretFiles, platform.random)
      others.push({
        cloud: await createCloud({ config, platform, log, database, keyFiles, images, outgoing }),
        database,
      })
    }
  })
  afterEach(async () => {
    await Promise.all(others.map(({ cloud }) => stopInVirtualTime(cloud, store.platform)))
    for (const { database } of others.splice(0)) await database.close()
    await store.stop()
  })

  const events = async (): Promise<Json[]> =>
    (await store.cloud.db.database.reads.selectFrom('outbox_event').selectAll().execute()).map((row) => ({
      type: row.type,
      ...(JSON.parse(row.data) as object),
    }))
  const hasEvery = async (type: string, count: number) =>
    (await events()).filter((e) => e.type === type).length >= count

  it('cancel, publish, ask the provider and deliver each thing once', async () => {
    const { ok, platform, psp, storeId } = store
    const { length: before } = await events()
    await ok('registerWebhook', { url: 'https://receiver.example/', events: ['*'] })
    const { products } = await ok('fetchProducts', { storeId })
    const { productId } = products.find(({ ean }: Json) => ean === PRODUCT.ean)
    await ok('setStock', { productId, storeId, quantity: 100 })
    const at = (minutes: number) => new Date(platform.clock.wall() + minutes * MINUTE).toISOString()
    for (let n = 0; n < OFFERS; n++)
      await ok('createOffer', {
        storeIds: [storeId],
        title: `Angebot ${n}`,
        validFrom: at(3),
        validTo: at(1_440),
        products: [{ name: 'Schirm', price: 5 }],
      })
    const purchases = []
    for (let n = 0; n < PURCHASES; n++) purchases.push((await store.start()).transactionId as string)
    const [paid = '', ...unpaid] = purchases
    await psp.end(await store.sessionOf(paid), 'paid')

    // The cloud asks for an open session after 2, 5, 10, 20 and 29 minutes. The payment time ends after 30 minutes.
    await store.pass(28 * MINUTE)
    const sessions = await Promise.all(unpaid.map((id) => store.sessionOf(id)))
    const polls = () => sessions.map((id) => psp.requests.filter((line) => line === `GET /sessions/${id}`).length)
    await store.wait('polls', () => polls().every((count) => count >= 5))
    expect(polls()).toEqual(unpaid.map(() => 5))
    await store.wait('cancellations', async () => {
      const statuses = await Promise.all(unpaid.map((id) => store.statusOf(id)))
      return statuses.every((status) => status === 'CANCELLED')
    })
    await store.wait('published offers', () => hasEvery('offer.published', OFFERS))
    await store.pass(5 * MINUTE)

    const all = await events()
    const keyed = all.map(({ type, offerId, transactionId }) => `${type} ${offerId ?? transactionId ?? ''}`)
    expect(keyed.filter((key, i) => keyed.indexOf(key) !== i)).toEqual([])
    const { stock } = await ok('fetchStock', { storeId })
    expect(stock).toMatchObject([{ reserved: 0, available: 99 }])
    expect(new Set(delivered).size).toBe(all.length - before)
    expect(delivered).toHaveLength(all.length - before)
  })
})
