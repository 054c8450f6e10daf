import { afterAll, beforeAll, expect, it } from 'vitest'
import { startTestCloud, type Json, type TestCloud } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { liveStores } from '../../../support/live-store.ts'

const DAY_MS = 86_400_000
/** Characters of an answer: those of the stored texts of a page, of its longest row, and of what is added to both. */
const ANSWER_LIMIT = 3_000_000

onEveryDatabase('pages of rows that a caller made as long as it may', (kind) => {
  let cloud: TestCloud
  let key: string
  let storeId: string
  beforeAll(async () => {
    cloud = await startTestCloud(kind)
    key = await cloud.key('secret', 'live', { account: 'Long', package: 'PRIME' })
    storeId = (await liveStores(cloud, key))[0] ?? ''
  })
  afterAll(() => cloud.stop())
  const ok = (operation: string, body: Json) => cloud.ok(key, operation, body)

  /** Number of rows of each page. Each answer must be short. */
  async function pagesOf(operation: string, body: Json, list: string): Promise<number[]> {
    const counts: number[] = []
    let cursor: string | undefined
    do {
      const page = await ok(operation, { storeId, limit: 100, ...body, ...(cursor !== undefined && { cursor }) })
      expect(JSON.stringify(page).length).toBeLessThan(ANSWER_LIMIT)
      counts.push(page[list].length)
      cursor = page.nextCursor
    } while (cursor !== undefined)
    return counts
  }

  it('fetchERPRecords returns few orders with many lines', async () => {
    const line = {
      ean: '1'.repeat(40),
      name: 'n'.repeat(300),
      externalProductId: 'p'.repeat(128),
      quantity: 1,
      unitPrice: 1,
    }
    const lines = Array.from({ length: 1_000 }, () => line)
    for (const call of [0, 1, 2])
      await ok('syncERP', {
        system: 'generic',
        storeId,
        dataType: 'orders',
        records: [0, 1, 2].map((k) => ({ externalId: `o-${call}-${k}`, lines })),
      })
    const counts = await pagesOf('fetchERPRecords', { dataType: 'orders' }, 'records')
    expect(counts).toEqual([1, 1, 1, 1, 1, 1, 1, 1, 1])
  })

  it('fetchActiveOffers returns few offers with many long products', async () => {
    const products = Array.from({ length: 500 }, (_, i) => ({
      name: `${i}`.padEnd(120, 'n'),
      category: 'c'.repeat(120),
      manufacturer: 'm'.repeat(120),
      unit: 'u'.repeat(60),
      description: 'd'.repeat(300),
      price: 1.23,
      oldPrice: 2.34,
    }))
    const at = (days: number) => new Date(cloud.platform.clock.wall() + days * DAY_MS).toISOString()
    for (let i = 0; i < 6; i++)
      await ok('createOffer', {
        storeIds: [storeId],
        title: `Offer ${i}`,
        validFrom: at(-1),
        validTo: at(7),
        products,
      })
    expect(await pagesOf('fetchActiveOffers', {}, 'offers')).toEqual([2, 2, 2])
  })

  it('the loyalty programs of a store have a limit of text, and those of an account come in pages', async () => {
    const rewards = Array.from({ length: 100 }, (_, i) => ({
      rewardId: `r${i}`.padEnd(128, 'r'),
      name: 'n'.repeat(120),
      cost: i + 1,
    }))
    const create = (in_: string) =>
      cloud.call(key, 'createLoyaltyProgram', {
        storeId: in_,
        name: 'Program',
        type: 'stamps',
        rewards,
        isActive: false,
      })
    let made = 0
    let last = await create(storeId)
    for (; last.status === 200; last = await create(storeId)) made++
    expect(last).toMatchObject({ status: 400, body: { details: [{ path: 'rewards', code: 'too_many_programs' }] } })
    const { programs } = await ok('getStoreLoyaltyPrograms', { storeId })
    expect(programs).toHaveLength(made)
    expect(JSON.stringify(programs).length).toBeLessThan(ANSWER_LIMIT)
    // A program may still become shorter.
    const { programId } = programs[0]
    await ok('updateLoyaltyProgram', { programId, rewards: rewards.slice(0, 99) })
    const [other = ''] = await liveStores(cloud, key)
    await create(other)
    await create(other)
    const first = await ok('getLoyaltyPrograms', { limit: 500 })
    expect(first.programs.length).toBeLessThan(made + 2)
    const rest = await ok('getLoyaltyPrograms', { limit: 500, cursor: first.nextCursor })
    expect([first.programs.length + rest.programs.length, rest.nextCursor]).toEqual([made + 2, undefined])
  })
})
