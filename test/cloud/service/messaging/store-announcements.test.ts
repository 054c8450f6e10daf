import { afterAll, beforeAll, expect, it } from 'vitest'
import { BackgroundTasks } from '../../../../cloud/service/messaging/broker-connection.ts'
import type { AgentBroker } from '../../../../cloud/service/messaging/embedded-broker.ts'
import { StoreAnnouncements } from '../../../../cloud/service/messaging/store-announcements.ts'
import { openShop, type Shop } from '../../../support/shop.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop('sqlite')
})
afterAll(() => shop.stop())

/** Announcements to a broker that notes the store of each message and the turn of the event loop. */
function world(heard: string[]) {
  const published: { storeId: string; turn: number }[] = []
  let turn = 0
  const count = () => void setImmediate(() => (turn++, isOpen && count()))
  let isOpen = true
  count()
  const tasks = new BackgroundTasks(() => shop.cloud.cloud.services.log)
  const stores = new StoreAnnouncements({
    database: shop.cloud.db.database,
    services: () => shop.cloud.cloud.services,
    tasks,
  })
  const broker = {
    connected: () => new Map(heard.map((storeId, n) => [`agt_${n}`, { storeId, agentId: `agt_${n}` }])),
    publish: ({ topic }: { topic: string }) => void published.push({ storeId: topic.split('/').at(-2) ?? '', turn }),
  }
  stores.attach(broker as unknown as AgentBroker)
  const settled = async () => {
    await tasks.settled()
    isOpen = false
  }
  return { stores, published, settled }
}

it('publishes a change of many stores only to agents that hear it, each store in a turn of its own', async () => {
  const { stores, published, settled } = world([shop.storeId, shop.otherStoreId])
  for (let n = 0; n < 2_000; n++) stores.storeChanged(`st_${n}`)
  stores.storeChanged(shop.storeId)
  stores.storeChanged(shop.otherStoreId)
  stores.storeChanged(shop.storeId)
  await settled()
  const turnsOf = (storeId: string) => published.flatMap((each) => (each.storeId === storeId ? [each.turn] : []))
  const [first, second] = [turnsOf(shop.storeId), turnsOf(shop.otherStoreId)]
  expect([first.length > 0, second.length > 0, first.length + second.length]).toEqual([true, true, published.length])
  expect(Math.max(...first)).toBeLessThan(Math.min(...second))
})

it('publishes all documents to the first agent of a store that changed unheard', async () => {
  const heard = [shop.storeId]
  const { stores, published, settled } = world(heard)
  stores.storeChanged(shop.storeId)
  await new Promise<void>((resolve) => void setImmediate(resolve))
  const before = published.length
  heard.length = 0
  stores.storeChanged(shop.storeId)
  await new Promise<void>((resolve) => void setImmediate(resolve))
  heard.push(shop.storeId)
  stores.connected(shop.storeId)
  await settled()
  expect(published.length).toBeGreaterThan(before)
})
