import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { TillEvidence } from '../../../../policy/journal.ts'
import { keptReturn, keptSale, type TillReturn, type TillSale } from '../../../../policy/till-sale.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

onEveryDatabase('a part of a piece, such as half a metre of three, comes back', (kind) => {
  let shop: Shop
  let till: TestAgent
  let plain: Json
  beforeAll(async () => {
    shop = await openShop(kind)
    const all = (await shop.ok('fetchProducts', { storeId: shop.storeId, limit: 500 })).products
    plain = all.find((p: Json) => p.tagged === false)
  })
  // Each test has its own agent, because the journal of one may be stuck.
  beforeEach(async () => {
    till = await enrolTestAgent(shop)
    const { policy } = await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })
    await shop.ok('updateProtectionPolicy', {
      storeId: shop.storeId,
      policy: { ...policy, tillSales: { agents: [till.agentId], salesPerHour: 10_000, valuePerHour: 1_000_000 } },
    })
    await shop.ok('setStock', { storeId: shop.storeId, productId: plain.productId, quantity: 10 })
  })
  afterAll(() => shop.stop())
  let number = 0
  const sale = (quantity: number): Json => ({
    saleId: `s${++number}`,
    tillId: 'till-3',
    occurredAt: new Date(shop.cloud.platform.clock.wall()).toISOString(),
    lines: [{ ean: plain.ean, quantity, priceUnit: 1_000, vat: 19 }],
  })
  const requestOf = (of: Json, resellable: boolean): Json => ({
    returnId: `R${++number}`,
    saleId: of['saleId'],
    tillId: 'till-3',
    resellable,
    lines: [{ lineId: '1', quantity: 0.5 }],
  })
  const sold = (each: Json): TillEvidence => ({
    kind: 'sale',
    sale: keptSale(shop.storeId, each as TillSale),
    items: [0, 0],
  })
  const purchasesOf = async ({ saleId }: Json) =>
    (await shop.ok('fetchPurchaseHistory', { storeId: shop.storeId, saleId })).purchases

  it('recordReturns does not answer 500', async () => {
    const of = sale(3)
    await shop.ok('recordSales', { storeId: shop.storeId, sales: [of] })
    const answer = await shop.call('recordReturns', { storeId: shop.storeId, returns: [requestOf(of, true)] })
    expect(answer.status).toBe(200)
  })

  it('voidSale after it does not answer 500', async () => {
    const of = sale(3)
    await shop.ok('recordSales', { storeId: shop.storeId, sales: [of] })
    await shop.ok('recordReturns', { storeId: shop.storeId, returns: [requestOf(of, false)] })
    const answer = await shop.call('voidSale', { storeId: shop.storeId, saleId: of['saleId'], tillId: 'till-3' })
    expect(answer.status).toBe(200)
  })

  it.each(['return', 'void'])('its %s at an agent stops no other sale', async (what) => {
    const [of, next] = [sale(3), sale(1)]
    const rows: TillEvidence[] = [
      sold(of),
      { kind: 'sale_return', return: keptReturn(shop.storeId, requestOf(of, what === 'return') as TillReturn) },
      ...(what === 'void' ? [{ kind: 'sale_void' as const, saleId: of['saleId'], tillId: 'till-3' }] : []),
      sold(next),
    ]
    const { status } = await till.report(rows.map((evidence) => till.row({ evidence })))
    expect([status, (await purchasesOf(of)).length, (await purchasesOf(next)).length]).toEqual([200, 1, 1])
  })
})
