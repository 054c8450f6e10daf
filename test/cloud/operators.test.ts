import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../support/cloud.ts'
import { onEveryDatabase } from '../support/databases.ts'
import { openShop, type Shop } from '../support/shop.ts'

onEveryDatabase('operators', (kind) => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(() => shop.stop())

  const namesIn = async (storeId: string) => (await shop.ok('fetchOperators', { storeId })).operators.map((operator: Json) => operator.name)

  it('are of one store, and gone once removed', async () => {
    const { storeId, otherStoreId } = shop
    const { operatorId } = await shop.ok('registerOperator', { storeId, name: 'Frau Petersen' })
    await shop.ok('registerOperator', { storeId, name: 'Herr Asmussen' })
    expect((await namesIn(storeId)).sort()).toEqual(['Frau Petersen', 'Herr Asmussen'])
    expect(await namesIn(otherStoreId)).toEqual([])
    await shop.ok('removeOperator', { operatorId })
    expect(await namesIn(storeId)).toEqual(['Herr Asmussen'])
    expect((await shop.call('removeOperator', { operatorId: 'op_nobody' })).status).toBe(404)
  })

  it('have cards of their own, in any form of the number, told to nobody', async () => {
    const { storeId, otherStoreId } = shop
    const first = await shop.ok('registerOperator', { storeId, name: 'Karte eins', card: '04:a2:b3:c4:d5:e6:80' })
    expect(first).toMatchObject({ hasCard: true, hasPin: false })
    expect(JSON.stringify((await shop.ok('fetchOperators', { storeId })).operators)).not.toMatch(/04A2|04:a2|salt/)
    expect(await shop.call('registerOperator', { storeId, name: 'Karte zwei', card: '04A2B3C4D5E680' })).toMatchObject({ status: 409, body: { code: 'already-exists' } })
    await shop.ok('registerOperator', { storeId: otherStoreId, name: 'Anderswo', card: '04A2B3C4D5E680' })
    for (const card of ['04A2B3', '04A2B3C4D', 'keine Karte', '']) expect((await shop.call('registerOperator', { storeId, name: 'Karte', card })).status).toBe(400)
    await shop.ok('removeOperator', { operatorId: first.operatorId })
    await shop.ok('registerOperator', { storeId, name: 'Karte zwei', card: '04 a2 b3 c4 d5 e6 80' })
  })

  it('that were removed approve nothing any more', async () => {
    const { storeId } = shop
    const { products } = await shop.ok('fetchProducts', { storeId, limit: 500 })
    const wine = products.find((product: Json) => product.flags.requiresHumanVerification)
    const { operatorId } = await shop.ok('registerOperator', { storeId, name: 'Frau Petersen' })
    const { sessionId } = await shop.ok('checkIn', { storeId })
    const { transactionId } = await shop.ok('startCheckout', { sessionId, items: [{ ean: wine.ean, quantity: 1 }] })
    await shop.ok('removeOperator', { operatorId })
    expect((await shop.call('approveCheckout', { transactionId, operatorId })).status).toBe(404)
  })
})
