import { describe, expect, it } from 'vitest'
import { ChangeFeed } from '../../../cloud/operations/change-feed.ts'
import { systemCaller } from '../../../cloud/foundation/caller.ts'
import type { SiblingMessage, Siblings } from '../../../cloud/foundation/siblings.ts'
import { virtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'

const caller = systemCaller('acc_1.test', 'test')
const alarm = { type: 'protection.exception.raised', storeId: 'st_1' }

describe('the change feed', () => {
  it('notifies listeners of the tenant, topic and store', () => {
    const feed = new ChangeFeed(virtualPlatform({ startMs: 0 }), undefined)
    const heard: string[] = []
    const listen = (name: string, tenant: string, topic: string, storeIds: string[] | null) =>
      feed.subscribe({ tenant, topics: new Set([topic]), storeIds: storeIds && new Set(storeIds) }, () =>
        heard.push(name),
      )
    listen('area', 'acc_1.test', 'protection', null)
    listen('event', 'acc_1.test', alarm.type, ['st_1'])
    listen('other store', 'acc_1.test', alarm.type, ['st_2'])
    listen('other tenant', 'acc_1.live', alarm.type, null)
    listen('other topic', 'acc_1.test', 'offers', null)
    const end = listen('ended', 'acc_1.test', 'protection', null)
    end?.()
    end?.()
    feed.publish(caller, 'protection', [alarm])
    expect(heard).toEqual(['area', 'event'])
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
    for (let n = 0; n < 100; n++) first!.publish(caller, 'protection', [alarm])
    await platform.advance(1_000)
    expect([sent.length, count]).toEqual([1, 1])
  })
})
