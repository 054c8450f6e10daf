import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Evidence } from '../../../../policy/journal.ts'
import type { Json } from '../../../support/cloud.ts'
import { countStatements } from '../../../support/count-statements.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

type Claim = Extract<Evidence, { kind: 'claim' }>

describe('the work for a claim', () => {
  let shop: Shop
  let agent: TestAgent
  let ids = 0
  beforeAll(async () => {
    shop = await openShop('sqlite')
    agent = await enrolTestAgent(shop)
    await agent.call('reportDeviceHeartbeat', { deviceId: shop.devices.pos_deactivator })
  })
  afterAll(() => shop.stop())

  const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)
  const claim = (fields: Partial<Claim>): Claim => ({
    kind: 'claim',
    redemptionId: `rdm-${++ids}`,
    nonce: `nonce-${ids}`,
    source: 'receipt',
    rightClass: 'release',
    ordinals: [0],
    deviceId: shop.devices.pos_deactivator,
    ...fields,
  })
  const report = async (...rows: Evidence[]) =>
    expect((await agent.report(rows.map((evidence) => agent.row({ evidence })))).body).toMatchObject({
      accepted: rows.length,
    })
  const buy = async (quantity: number) => {
    const { transactionId } = await shop.buy([{ ean: shop.products[0]!.ean, quantity }])
    return shop.cloud.db.database.reads
      .selectFrom('purchase')
      .select(['cti as nonce', 'purchase_id as purchaseId'])
      .where('purchase_id', '=', transactionId)
      .executeTakeFirstOrThrow() as Promise<{ nonce: string; purchaseId: string }>
  }
  const paidItem = async () => {
    const item = await shop.newItem(shop.products[0] as Json)
    await shop.ok('updateItemStatus', { storeId: shop.storeId, ...item, itemStatus: 'paid' })
    return item
  }
  const redemptionsOf = async (redemptionId: string) =>
    (
      await shop.cloud.db.database.reads
        .selectFrom('redemption')
        .select('step')
        .where('redemption_id', '=', redemptionId)
        .execute()
    ).length
  const unapplied = async () =>
    (await shop.cloud.db.database.reads.selectFrom('journal_row').select('seq').where('applied', '=', 0).execute())
      .length

  it('does not grow with the rights of one item, which has one', async () => {
    const item = await paidItem()
    const many = claim({ source: 'item', item, ordinals: numbers(200) })
    expect(await countStatements(() => report(many))).toBeLessThan(60)
    expect([await redemptionsOf(many.redemptionId), await unapplied()]).toEqual([0, 1])
    const one = claim({ source: 'item', item })
    await report(one)
    expect([await redemptionsOf(one.redemptionId), await unapplied()]).toEqual([1, 1])
  })

  it('does not grow with rights that are named twice, or that no purchase has', async () => {
    const { nonce } = await buy(3)
    const before = await unapplied()
    for (const ordinals of [numbers(200).map(() => 0), numbers(2_001)])
      expect(await countStatements(() => report(claim({ nonce, ordinals })))).toBeLessThan(60)
    expect(await unapplied()).toBe(before + 2)
  })

  it('hardly grows with the units of a purchase, and neither does that for their outcome', async () => {
    const work = async (count: number) => {
      const { nonce, purchaseId } = await buy(count)
      const all = claim({ nonce, ordinals: numbers(count) })
      const claimed = await countStatements(() => report(all))
      expect(await redemptionsOf(all.redemptionId)).toBe(count)
      const { redemptionId } = all
      await countStatements(() => report({ kind: 'outcome', redemptionId, outcome: 'failed' }))
      const confirmed = await countStatements(() => report({ kind: 'outcome', redemptionId, outcome: 'confirmed' }))
      const { securityTagStatus } = await shop.ok('fetchPurchase', { transactionId: purchaseId })
      expect(securityTagStatus).toBe('deactivated')
      return { claimed, confirmed }
    }
    const [once, twice] = [await work(100), await work(200)]
    expect(twice.claimed - once.claimed).toBeLessThan(20)
    // One statement for the outcome of each redemption, and two for the exception that the outcomes differ.
    expect(twice.confirmed - once.confirmed).toBeLessThan(320)
  })

  it('hardly grows with the releases of a batch', async () => {
    const work = async (count: number) => {
      const { nonce, purchaseId } = await buy(count)
      const releases = numbers(count).flatMap((n): Evidence[] => {
        const one = claim({ nonce, ordinals: [n] })
        return [one, { kind: 'outcome', redemptionId: one.redemptionId, outcome: 'confirmed' }]
      })
      const statements = await countStatements(() => report(...releases))
      const { securityTagStatus } = await shop.ok('fetchPurchase', { transactionId: purchaseId })
      expect(securityTagStatus).toBe('deactivated')
      return statements
    }
    expect((await work(40)) - (await work(10))).toBeLessThan(20)
  })

  it('is limited for one right, which an agent may claim 50 times', async () => {
    const item = await paidItem()
    const before = await unapplied()
    for (let n = 0; n < 3; n++) await report(...numbers(20).map(() => claim({ source: 'item', item })))
    expect(await unapplied()).toBe(before + 10)
  })
})
