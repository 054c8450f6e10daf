import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { liveStores } from '../../../support/live-store.ts'
import { startTestCloud, type TestCloud } from '../../../support/cloud.ts'

inFullSizeOnEveryDatabase('loyalty programs of one store', (kind) => {
  let cloud: TestCloud
  let key: string
  let storeId: string
  const ok = (operation: string, body: Json) => cloud.ok(key, operation, body)
  const make = (fields: Json) => ({ storeId, name: 'Karte', ...fields })
  beforeAll(async () => {
    cloud = await startTestCloud(kind)
    key = await cloud.key('secret', 'live')
    ;[storeId = ''] = await liveStores(cloud, key)
  })
  afterAll(async () => {
    expect(cloud.errors).toEqual([])
    await cloud.stop()
  })

  it('never add points, stamps and EUR', async () => {
    const amounts = { points: 40, tier: 60, stamps: 3, cashback: 1.25 }
    const idOf: Record<string, string> = {}
    for (const [type, amount] of Object.entries(amounts)) {
      const { programId } = await ok('createLoyaltyProgram', make({ type }))
      idOf[type] = programId
      await ok('addLoyaltyPoints', { programId, userId: 'shopper-1', amount })
    }
    await ok('redeemLoyaltyPoints', { programId: idOf.stamps, userId: 'shopper-1', amount: 1 })
    await ok('redeemLoyaltyPoints', { programId: idOf.cashback, userId: 'shopper-1', amount: 0.25 })
    const answer = await ok('getLoyaltyAnalytics', { storeId })
    expect(answer).toMatchObject({
      members: 4,
      redemptions: 2,
      pointsIssued: 100,
      pointsRedeemed: 0,
      redemptionRate: 0,
      stamps: { issued: 3, redeemed: 1, expired: 0, reversed: 0, redemptionRate: 33.3 },
      cashback: { issued: 1.25, redeemed: 0.25, expired: 0, reversed: 0, redemptionRate: 20 },
    })
    expect(answer.monthly.at(-1)).toMatchObject({
      newMembers: 4,
      redemptions: 2,
      pointsIssued: 100,
      stamps: { issued: 3, redeemed: 1 },
      cashback: { issued: 1.25, redeemed: 0.25 },
    })
    for (const [type, pointsIssued] of Object.entries(amounts))
      expect(answer.programs.find((p: Json) => p.programId === idOf[type])).toMatchObject({ type, pointsIssued })
  })

  it('allow 50 active programs; inactive ones do not count', async () => {
    const [other = ''] = await liveStores(cloud, key)
    const program = { storeId: other, name: 'Karte', type: 'points' }
    const ids: string[] = []
    for (let i = 0; i < 50; i++) ids.push((await ok('createLoyaltyProgram', program)).programId)
    const refusal = { status: 400, body: { details: [{ path: 'storeId', code: 'too_many_programs' }] } }
    expect(await cloud.call(key, 'createLoyaltyProgram', program)).toMatchObject(refusal)
    const inactive = await ok('createLoyaltyProgram', { ...program, isActive: false })
    await ok('updateLoyaltyProgram', { programId: ids[0], name: 'Neu' })
    expect(
      await cloud.call(key, 'updateLoyaltyProgram', { programId: inactive.programId, isActive: true }),
    ).toMatchObject(refusal)
    await ok('updateLoyaltyProgram', { programId: ids[0], isActive: false })
    await ok('updateLoyaltyProgram', { programId: inactive.programId, isActive: true })
    expect(await cloud.call(key, 'createLoyaltyProgram', program)).toMatchObject(refusal)
  })
})
