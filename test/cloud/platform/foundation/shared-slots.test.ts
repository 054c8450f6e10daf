import { describe, expect, it } from 'vitest'
import { Failure } from '../../../../cloud/platform/foundation/failure.ts'
import { holderOf, shares, sharedSlots, type SlotLimits } from '../../../../cloud/platform/foundation/shared-slots.ts'
import type { OutgoingHttp } from '../../../../cloud/platform/outgoing/outgoing-http.ts'
import { startTestCloud, type Answer } from '../../../support/cloud.ts'
import { liveStores } from '../../../support/live-store.ts'

const BUSY = { text: 'too many', retryAfter: 7 }

/** Slots whose tasks end when the test says so. */
function observed(limits: SlotLimits) {
  const slots = sharedSlots(limits, BUSY)
  const running: { name: string; end: (error?: Error) => void }[] = []
  const refused: string[] = []
  const settle = () => new Promise((resolve) => setImmediate(resolve))
  return {
    async add(...names: string[]) {
      for (const name of names) {
        const task = () =>
          new Promise<void>((resolve, reject) =>
            running.push({ name, end: (error) => (error ? reject(error) : resolve()) }),
          )
        slots(name.replaceAll(/\d/g, ''), task).catch((error: unknown) => {
          if (error instanceof Failure) refused.push(`${name} ${error.code} ${error.extras.retryAfter}`)
        })
      }
      await settle()
    },
    async end(name: string, error?: Error) {
      const [task] = running.splice(
        running.findIndex((each) => each.name === name),
        1,
      )
      task?.end(error)
      await settle()
    },
    running: () => running.map(({ name }) => name),
    refused,
  }
}

describe('shared slots', () => {
  it('leave a slot for others if one account holds its share', async () => {
    const slots = observed({ atWork: 3, atWorkOfOne: 2, waiting: 4, waitingOfOne: 2 })
    await slots.add('evil1', 'evil2', 'evil3', 'evil4', 'evil5', 'evil6')
    expect(slots.running()).toEqual(['evil1', 'evil2'])
    expect(slots.refused).toEqual(['evil5 unavailable 7', 'evil6 unavailable 7'])
    await slots.add('demo1')
    expect(slots.running()).toEqual(['evil1', 'evil2', 'demo1'])
  })

  it('leave places in the queue for others', async () => {
    const slots = observed({ atWork: 1, atWorkOfOne: 1, waiting: 3, waitingOfOne: 2 })
    await slots.add('evil1', 'evil2', 'evil3', 'evil4', 'demo1', 'other1')
    expect(slots.refused).toEqual(['evil4 unavailable 7', 'other1 unavailable 7'])
  })

  it('go to the account with the fewest tasks at work, then to the oldest task', async () => {
    const slots = observed({ atWork: 4, atWorkOfOne: 3, waiting: 20, waitingOfOne: 9 })
    await slots.add('evil1', 'evil2', 'evil3', 'evil4', 'demo1', 'demo2')
    expect(slots.running()).toEqual(['evil1', 'evil2', 'demo1'])
    await slots.end('demo1')
    expect(slots.running()).toEqual(['evil1', 'evil2', 'demo2'])
    await slots.end('evil1')
    expect(slots.running()).toEqual(['evil2', 'demo2', 'evil3'])
  })

  it('are free again after a failed task, and for every task in the end', async () => {
    const slots = observed({ atWork: 1, atWorkOfOne: 1, waiting: 9, waitingOfOne: 9 })
    await slots.add('a1', 'a2', 'b1')
    await slots.end('a1', new Error('failed'))
    expect(slots.running()).toEqual(['a2'])
    await slots.end('a2')
    await slots.end('b1')
    await slots.add('c1')
    expect(slots.running()).toEqual(['c1'])
  })

  it('leave something for one more account, however many hold their shares', () => {
    const take = shares({ ofOne: 16, total: 64 })
    const held = ['a', 'b', 'c', 'd', 'e', 'f'].map((holder) => {
      let count = 0
      while (take(holder)) count++
      return count
    })
    expect(held).toEqual([16, 16, 16, 8, 4, 2])
    const release = take('honest')
    expect(release).toBeDefined()
    release?.()
    release?.()
    expect(['honest', 'other', 'third'].map((holder) => take(holder) !== undefined)).toEqual([true, true, false])
  })

  it('count test and live mode of an account as one, and anonymous callers by network', () => {
    expect(holderOf({ kind: 'anyone', address: '192.0.2.1' })).toBe('192.0.2.1')
    const agent = {
      kind: 'agent',
      agentId: 'ag',
      storeId: 'st',
      ledgerId: 'l',
      generation: 1,
      accountId: 'acc',
      package: 'PRIME',
    } as const
    expect((['test', 'live'] as const).map((mode) => holderOf({ ...agent, mode, tenant: `acc.${mode}` }))).toEqual([
      'acc',
      'acc',
    ])
  })
})

describe('the slots for tills and ERP systems', () => {
  it('let another account read its till while one account waits for slow systems', async () => {
    const sent: { url: string; answer: () => void }[] = []
    const unauthorized = { status: 401, headers: {}, body: new Uint8Array(), isCut: false }
    const send: OutgoingHttp['send'] = ({ url }) =>
      new Promise((resolve) => sent.push({ url, answer: () => resolve(unauthorized) }))
    const cloud = await startTestCloud('sqlite', { outgoing: { send } })
    const keyOf = (account: string) => cloud.key('secret', 'live', { account })
    const [evil, demo] = [await keyOf('evil'), await keyOf('demo')]
    const call = (key: string, storeId: string) => {
      const credentials = { baseUrl: `https://${storeId}.example/`, apiKey: 'k' }
      return cloud.call(key, 'syncPOS', { storeId, system: 'generic', credentials })
    }
    const ended: Answer[] = []
    const passes = () => new Promise((resolve) => setImmediate(resolve))
    const ofEvil = (await liveStores(cloud, evil, { count: 20 })).map(async (each) =>
      ended.push(await call(evil, each)),
    )
    while (ended.length < 12 || sent.length < 8) await passes()
    expect(ended.map(({ status, headers }) => [status, headers.get('retry-after')])).toEqual(
      Array.from({ length: 12 }, () => [503, '5']),
    )
    const [storeId = ''] = await liveStores(cloud, demo)
    const own = call(demo, storeId)
    while (sent.length < 9) await passes()
    expect(sent.at(-1)?.url.toLowerCase()).toContain(storeId.toLowerCase())
    for (const { answer } of sent) answer()
    expect((await own).status).toBe(400)
    await Promise.all(ofEvil)
    await cloud.stop()
  })
})
