import { afterAll, beforeAll, expect, it } from 'vitest'
import { startTestCloud, type Json, type TestCloud } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { liveStores } from '../../../support/live-store.ts'

const DAY_MS = 86_400_000
const FULL = { status: 409, body: { reason: 'too_many_offers' } }

onEveryDatabase('a store with 200 offers', (kind) => {
  let cloud: TestCloud
  let key: string
  let full: string
  let other: string
  let first: Json
  const at = (days: number) => new Date(cloud.platform.clock.wall() + days * DAY_MS).toISOString()
  const offer = (storeIds: string[], fields: Json = {}) => ({
    storeIds,
    title: 'Herbstwochen',
    validFrom: at(-2),
    validTo: at(7),
    products: [{ name: 'Regenschirm', price: 9.99 }],
    ...fields,
  })

  beforeAll(async () => {
    cloud = await startTestCloud(kind)
    key = await cloud.key('secret', 'live')
    ;[full = '', other = ''] = await liveStores(cloud, key, { count: 2 })
    first = await cloud.ok(key, 'createOffer', offer([full]))
    // 199 more: rows as `createOffer` writes them, of offers that run or start later.
    await cloud.db.database.write(async (db) => {
      const group = await db.selectFrom('offer_group').selectAll().executeTakeFirstOrThrow()
      const branch = await db.selectFrom('offer').selectAll().executeTakeFirstOrThrow()
      const numbers = Array.from({ length: 199 }, (_, n) => n)
      const groups = numbers.map((n) => ({ ...group, group_id: `grp_${n}`, lead_id: `off_${n}` }))
      await db.insertInto('offer_group').values(groups).execute()
      const branches = numbers.map((n) => ({ ...branch, group_id: `grp_${n}`, offer_id: `off_${n}` }))
      await db.insertInto('offer').values(branches).execute()
    })
  })
  afterAll(async () => {
    expect(cloud.errors).toEqual([])
    await cloud.stop()
  })

  it('takes no further offer that runs or starts later, and the refusal names store and fix', async () => {
    const refused = await cloud.call(key, 'createOffer', offer([other, full]))
    expect(refused).toMatchObject(FULL)
    expect(refused.body.error).toContain(full)
    expect(refused.body.error).toContain('delete one')
    expect(await cloud.call(key, 'createOffer', offer([full], { validFrom: at(3) }))).toMatchObject(FULL)
    expect(await cloud.call(key, 'cloneOffer', { offerId: first.offerId, targetStoreIds: [full] })).toMatchObject(FULL)
    // A refused call stores nothing.
    expect((await cloud.ok(key, 'getManagerOffers', {})).total).toBe(200)
  })

  it('takes no offer of other stores, nor one that had ended, by an update', async () => {
    const there = await cloud.ok(key, 'createOffer', offer([other]))
    expect(await cloud.call(key, 'updateOffer', { offerId: there.offerId, storeIds: [other, full] })).toMatchObject(
      FULL,
    )
    const ended = await cloud.ok(key, 'createOffer', offer([full], { validTo: at(-1) }))
    expect(await cloud.call(key, 'updateOffer', { offerId: ended.offerId, validTo: at(1) })).toMatchObject(FULL)
    await cloud.ok(key, 'updateOffer', { offerId: ended.offerId, title: 'Vorbei' })
    await cloud.ok(key, 'updateOffer', { offerId: first.offerId, title: 'Sommerwochen' })
  })

  it('takes one again after another ended or was deleted', async () => {
    await cloud.ok(key, 'updateOffer', { offerId: first.offerId, validTo: at(-1) })
    const second = await cloud.ok(key, 'createOffer', offer([full]))
    expect(await cloud.call(key, 'createOffer', offer([full]))).toMatchObject(FULL)
    await cloud.ok(key, 'deleteOffer', { offerId: second.offerId })
    await cloud.ok(key, 'createOffer', offer([full]))
  })
})
