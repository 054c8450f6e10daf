import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../support/cloud.ts'
import { onEveryDatabase } from '../../support/databases.ts'
import { newEpc, openShop, type Shop } from '../../support/shop.ts'

/** Tag numbers are stored as typed. People type them in other case and with other blanks. */
onEveryDatabase('tag numbers', (kind) => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(() => shop.stop())

  const register = (...items: Json[]) => shop.ok('registerProtectedItems', { storeId: shop.storeId, items })
  const fetchItem = (tagId: string) => shop.call('fetchProtectedItem', { storeId: shop.storeId, tagId })
  const release = (tagId: string) =>
    shop.ok('verifyProtectedItem', {
      deviceId: shop.devices.pos_deactivator,
      protectionAction: 'deactivate_label',
      tagId,
    })

  it('name the same tag in every spelling, and are returned as they were registered', async () => {
    const [product] = shop.products
    expect(await register({ ean: product.ean, tagId: 'AM 20-931' })).toMatchObject({ registered: 1, errors: [] })
    for (const typed of ['AM 20-931', 'am 20-931', ' Am  20-931 '])
      expect((await fetchItem(typed)).body).toMatchObject({ tagId: 'AM 20-931', itemStatus: 'sellable' })
    expect((await fetchItem('AM20-931')).status).toBe(404)
    const held = { storeId: shop.storeId, tagId: 'am 20-931', itemStatus: 'exception_hold' }
    expect(await shop.ok('updateItemStatus', held)).toMatchObject({ itemStatus: 'exception_hold' })
    await shop.ok('updateItemStatus', { ...held, itemStatus: 'sellable' })
    await shop.buy([{ ean: product.ean, quantity: 1, tagIds: ['am  20-931'] }])
    const first = await release('AM 20-931 ')
    expect(first).toMatchObject({ authorized: true })
    await shop.ok('redeemProtectionAuthorization', {
      authorizationToken: first.authorizationToken,
      deviceId: shop.devices.pos_deactivator,
      redemptionId: 'red-am-20-931',
      outcome: 'confirmed',
    })
    expect(await release('am 20-931')).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  })

  it('are refused if another spelling of the number is registered, and both are named', async () => {
    const [product, other] = shop.products
    const both = (typed: string, known: string) => ({
      index: 1,
      field: 'tagId',
      code: 'tag_number_taken',
      message: `tagId: "${typed}" is the same tag number as "${known}", which is registered: send "${known}"`,
    })
    expect(await register({ ean: product.ean, tagId: 'HT-a1' }, { ean: other.ean, tagId: 'ht-A1' })).toEqual({
      success: true,
      registered: 1,
      errors: [both('ht-A1', 'HT-a1')],
    })
    expect((await fetchItem('HT-A1')).body).toMatchObject({ tagId: 'HT-a1', ean: product.ean })
    const epc = newEpc()
    expect(await register({ epc, tagId: 'HT-a2' }, { epc, tagId: 'HT-A2' })).toMatchObject({
      registered: 1,
      errors: [both('HT-A2', 'HT-a2')],
    })
    expect(await register({ epc, tagId: 'HT-a2' }, { epc, tagId: 'HT-a3' })).toMatchObject({ registered: 2 })
  })

  it('are refused if they are blank', async () => {
    expect(await register({ tagId: '   ' })).toMatchObject({ registered: 0, errors: [{ field: 'tagId' }] })
  })
})
