import { describe, expect, it } from 'vitest'
import { ChangeFeed, LISTENERS } from '../../../../cloud/platform/operations/notifier.ts'
import { systemCaller } from '../../../../cloud/platform/foundation/caller.ts'
import type { SiblingMessage, Siblings } from '../../../../cloud/platform/foundation/ports.ts'
import { openShop } from '../../../support/shop.ts'
import { virtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'

const caller = systemCaller('acc_1.test', 'test')
const alarm = { type: 'protection.exception.raised', storeId: 'st_1' }

describe('the change feed', () => {
  it('notifies listeners of the tenant, topic and store', () => {
    const feed = new ChangeFeed(virtualPlatform({ startMs: 0 }), undefined)
    const heard: string[] = []
    const listen = (name: string, tenant: string, topic: string, storeIds: string[] | null) => {
      const filter = { tenant, topics: new Set([topic]), storeIds: storeIds && new Set(storeIds) }
      return feed.subscribe(filter, () => heard.push(name))
    }
    listen('area', 'acc_1.test', 'protection', null)
    listen('event', 'acc_1.test', alarm.type, ['st_1'])
    listen('other store', 'acc_1.test', alarm.type, ['st_2'])
    listen('user of the store', 'acc_1.test', 'protection', ['st_1'])
    listen('other tenant', 'acc_1.live', alarm.type, null)
    listen('user of another store', 'acc_1.test', 'protection', ['st_2'])
    listen('other topic', 'acc_1.test', 'offers', null)
    const end = listen('ended', 'acc_1.test', 'protection', null)
    end?.()
    end?.()
    const notified = (by: typeof caller, storeIds: string[], events = [alarm]) => {
      heard.length = 0
      feed.publish(by, { area: 'protection', storeIds, events })
      return [...heard]
    }
    const inStore = ['area', 'user of the store']
    expect(notified(caller, [])).toEqual([...inStore, 'event'])
    expect(notified(caller, ['st_1'], [])).toEqual(inStore)
    expect(notified({ ...caller, storeIds: ['st_1'] }, [], [])).toEqual(inStore)
    expect(notified({ ...caller, storeIds: ['st_1', 'st_2'] }, ['st_2'], [])).toEqual(['area', 'user of another store'])
    // The change may concern each store.
    expect(notified(caller, [], [])).toEqual([...inStore, 'user of another store'])
  })

  it('leaves listeners to other accounts', () => {
    const feed = new ChangeFeed(virtualPlatform({ startMs: 0 }), undefined)
    const listen = (tenant: string) =>
      feed.subscribe({ tenant, topics: new Set(['offers']), storeIds: null }, () => undefined)
    const own = Array.from({ length: LISTENERS.ofOne }, (_, n) => listen(`acc_1.${n % 2 === 0 ? 'test' : 'live'}`))
    expect(own.every((end) => end !== undefined)).toBe(true)
    expect([listen('acc_1.live'), listen('acc_2.test')]).toEqual([undefined, expect.any(Function)])
    own[0]?.()
    own[0]?.()
    expect([listen('acc_1.test'), listen('acc_1.test')]).toEqual([expect.any(Function), undefined])
  })

  it('tells the other workers together, and not in a circle', async () => {
    const platform = virtualPlatform({ startMs: 0 })
    const handlers: ((message: SiblingMessage) => void)[] = []
    const sent: SiblingMessage[] = []
    const siblingsOf = (own: number): Siblings => ({
      send: (message) => {
        sent.push(message)
        handlers.forEach((handle, n) => n !== own && handle(message))
      },
      subscribe: (handle) => void (handlers[own] = handle),
    })
    const [first, second] = [0, 1].map((n) => new ChangeFeed(platform, siblingsOf(n)))
    let count = 0
    second!.subscribe({ tenant: 'acc_1.test', topics: new Set([alarm.type]), storeIds: null }, () => count++)
    for (let n = 0; n < 100; n++) first!.publish(caller, { area: 'protection', storeIds: [], events: [alarm] })
    await platform.advance(1_000)
    expect([sent.length, count]).toEqual([1, 1])
  })

  it('names the store of a change, also if the caller has all stores', async () => {
    const shop = await openShop('sqlite')
    const owner = await shop.cloud.user('owner')
    const { stores } = await shop.cloud.ok(owner, 'fetchStores')
    const other = stores.find(({ storeId }: { storeId: string }) => storeId !== shop.storeId).storeId
    const { tenant } = await shop.cloud.db.database.reads.selectFrom('store').select('tenant').executeTakeFirstOrThrow()
    const heard: string[] = []
    for (const storeId of [shop.storeId, other])
      shop.cloud.cloud.services.changes.subscribe(
        { tenant, topics: new Set(['assistance']), storeIds: new Set([storeId]) },
        () => heard.push(storeId),
      )
    await shop.cloud.ok(owner, 'createZone', { storeId: shop.storeId, name: 'Herren' })
    expect(heard).toEqual([shop.storeId])
    await shop.ok('createZone', { storeId: other, name: 'Damen' })
    expect(heard).toEqual([shop.storeId, other])
    await shop.stop()
  })
})
