import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../../support/cloud.ts'
import { fillConsole } from '../../../support/console.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { openShop, type Shop } from '../../../support/shop.ts'

onEveryDatabase('open tasks of a store', (kind) => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(() => shop?.stop())

  async function tasks(): Promise<Record<string, number>> {
    const { tasks } = await shop.ok('fetchOpenTasks', { storeId: shop.storeId })
    return Object.fromEntries(tasks.map((task: Json) => [task.kind, task.count]))
  }
  const NONE = {
    emergency: 0,
    alarm: 0,
    alarmHelp: 0,
    ageCheck: 0,
    spotCheck: 0,
    help: 0,
    order: 0,
    release: 0,
    refund: 0,
    exception: 0,
  }

  it('counts each kind, until a person has done it', async () => {
    const { storeId } = shop
    expect(await tasks()).toEqual(NONE)
    await fillConsole(shop)
    expect(await tasks()).toEqual({
      alarm: 1,
      emergency: 0,
      alarmHelp: 0,
      ageCheck: 1,
      spotCheck: 1,
      help: 1,
      order: 1,
      release: 1,
      refund: 1,
      exception: 1,
    })

    const { operatorId } = await shop.ok('registerOperator', { storeId, name: 'Frau Jensen' })
    const { purchases } = await shop.ok('fetchPurchaseHistory', { storeId, awaitingApproval: true })
    for (const { transactionId } of purchases) await shop.ok('approveCheckout', { transactionId, operatorId })
    const { requests } = await shop.ok('fetchAssistanceRequests', { storeId })
    await shop.ok('answerAssistanceRequest', { requestId: requests[0].requestId, message: 'Ich komme.' })
    const { exceptions } = await shop.ok('fetchExceptions', { storeId })
    for (const { exceptionId } of exceptions) await shop.ok('acknowledgeException', { exceptionId })
    const { orders } = await shop.ok('fetchClickCollectOrders', { storeId, status: 'pending' })
    for (const { orderId } of orders) await shop.ok('updateClickCollectStatus', { orderId, status: 'confirmed' })
    expect(await tasks()).toEqual(NONE)
    expect((await shop.ok('fetchOpenTasks', { storeId: shop.otherStoreId })).tasks[0]).toEqual({
      kind: 'emergency',
      count: 0,
    })
  })

  it('adds up all stores of the caller, and lists those in which something waits', async () => {
    const { storeId, otherStoreId } = shop
    const { zones } = await shop.ok('fetchZones', { storeId })
    await shop.ok('requestAssistance', { zoneId: zones[0].zoneId })
    const { zoneId } = await shop.ok('createZone', { storeId: otherStoreId, name: 'Ausgang' })
    const counts = (tasks: Json[]) => Object.fromEntries(tasks.filter((t) => t.count > 0).map((t) => [t.kind, t.count]))
    const one = await shop.ok('fetchOpenTasks', {})
    expect(counts(one.tasks)).toEqual({ help: 1 })
    expect(one.stores.map((store: Json) => store.storeId)).toEqual([storeId])
    await shop.ok('requestAssistance', { zoneId })
    const both = await shop.ok('fetchOpenTasks', {})
    expect(counts(both.tasks)).toEqual({ help: 2 })
    expect(Object.fromEntries(both.stores.map((store: Json) => [store.storeId, counts(store.tasks)]))).toEqual({
      [storeId]: { help: 1 },
      [otherStoreId]: { help: 1 },
    })
    const { key } = await shop.ok('createApiKey', { name: 'one', kind: 'secret', storeIds: [otherStoreId] })
    const bound = await shop.cloud.ok(key, 'fetchOpenTasks', {})
    expect([counts(bound.tasks), bound.stores.length]).toEqual([{ help: 1 }, 1])
    for (const id of [storeId, otherStoreId]) {
      const { requests } = await shop.ok('fetchAssistanceRequests', { storeId: id })
      for (const { requestId } of requests) await shop.ok('answerAssistanceRequest', { requestId, message: 'Ja.' })
    }
  })

  it('names when the oldest task of a kind began', async () => {
    const { storeId } = shop
    const { zones } = await shop.ok('fetchZones', { storeId })
    await shop.ok('requestAssistance', { zoneId: zones[0].zoneId })
    const { requests } = await shop.ok('fetchAssistanceRequests', { storeId, status: 'open' })
    const { tasks } = await shop.ok('fetchOpenTasks', { storeId })
    expect(tasks.find((task: Json) => task.kind === 'help').oldestAt).toBe(requests[0].createdAt)
  })
})
