import { afterEach, describe, expect, it } from 'vitest'
import { httpClient, type CallLimits, type Fetch } from '../../../edge-agent/link/wire/http-client.ts'
import { pause } from '../../../policy/platform.ts'
import { virtualPlatform } from '../../verification/simulation/virtual/virtual-platform.ts'
import type { Json } from '../../support/cloud.ts'
import { openStore, type TestStore } from '../../support/store.ts'
import { fakeReader } from '../../support/fake-reader.ts'

describe('an answer over a slow line', () => {
  const platform = virtualPlatform()

  /** Returns an answer in `count` parts, one every `everyMs`. */
  const inParts =
    (count: number, everyMs: number): Fetch =>
    async (_url, { signal }) => ({
      status: 200,
      async text(onPart) {
        for (let n = 0; n < count; n++) {
          await pause(platform.timers, everyMs, signal)
          onPart()
        }
        return '{"success":true}'
      },
    })
  const call = async (fetch: Fetch, limits: CallLimits) => {
    const answer = httpClient('https://cloud.example', fetch, platform).post('fetchSignedDocuments', {}, limits)
    await platform.advance(200_000)
    return (await answer).kind
  }

  it('is received while data arrives, if no person waits', async () => {
    const limits = { timeoutMs: 3_000, totalMs: 60_000 }
    expect(await call(inParts(20, 2_500), limits)).toBe('answered')
    expect(await call(inParts(2, 3_500), limits)).toBe('unreachable')
    expect(await call(inParts(100, 1_000), limits)).toBe('unreachable')
    expect(await call(inParts(2, 2_000), { timeoutMs: 3_000 })).toBe('unreachable')
  })
})

describe('an agent on a slow line', () => {
  let store: TestStore
  afterEach(() => store.stop())

  /** Speed of a line that only this agent uses, bit/s. A part is 1,400 bytes. */
  const BITS_PER_SECOND = 500_000

  it('receives thousands of items and stays online', async () => {
    let shop: TestStore['shop'] | undefined
    let world: TestStore['world'] | undefined
    const [line, lost] = [{ isUp: true, isSlow: false }, { calls: 0 }]
    const fetch: Fetch = async (url, init) => {
      if (!line.isUp || !shop || !world) throw new Error('cut')
      const { timers } = world
      const answer = await shop.cloud.cloud.app.request(url.replace('https://shop.example', ''), {
        method: init.method,
        headers: init.headers,
        ...(init.body !== undefined && { body: init.body }),
      })
      const text = await answer.text()
      return {
        status: answer.status,
        async text(onPart) {
          for (let sent = 0; line.isSlow && sent < text.length; sent += 14_000) {
            await pause(timers, (14_000 * 8_000) / BITS_PER_SECOND, init.signal).catch((error: unknown) => {
              lost.calls++
              throw error
            })
            onPart()
          }
          return text
        },
      }
    }
    store = await openStore({
      reader: { device: fakeReader().device, antennas: { inside: [1], outside: [2] } },
      extra: async (s, w) => {
        shop = s
        world = w
        return {}
      },
      parts: { fetch },
    })
    await store.until('online', () => store.agent.link.isOnline)
    line.isUp = false
    await store.until('offline', () => !store.agent.link.isOnline)
    const epc = (n: number) => `E2801160AABBCCDD${n.toString(16).padStart(8, '0').toUpperCase()}`
    for (let page = 0; page < 8; page++) {
      const items: Json[] = Array.from({ length: 500 }, (_, n) => ({
        epc: epc(page * 500 + n),
        ean: store.shop.products[0].ean,
        protectionTechnology: 'uhf_rfid',
      }))
      await store.drive(store.shop.ok('registerProtectedItems', { storeId: store.shop.storeId, items }))
    }
    line.isSlow = true
    line.isUp = true
    await store.until('the items', () => store.agent.items.find('epc', epc(3_999)) !== undefined, 120_000)
    expect(lost.calls).toBe(0)
    expect(store.agent.link.isOnline).toBe(true)
  })
})
