import { afterAll, beforeAll, expect, it } from 'vitest'
import { encodeSgtin, splitGtin14 } from '../../../policy/gs1/sgtin.ts'
import { toGtin14 } from '../../../policy/gs1/gtin.ts'
import type { Json } from '../../support/cloud.ts'
import { onEveryDatabase } from '../../support/databases.ts'
import { newEpc, openShop, type Shop } from '../../support/shop.ts'

onEveryDatabase('reuseTags', (kind) => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(() => shop.stop())

  const reuse = (tags: Json[]) => shop.ok('reuseTags', { storeId: shop.storeId, tags, operatorId: 'op-1' })
  const find = (names: Json) => shop.ok('fetchProtectedItem', { storeId: shop.storeId, ...names })
  const detach = (body: Json) =>
    shop.ok('verifyProtectedItem', {
      deviceId: shop.devices.self_checkout_detacher,
      protectionAction: 'detach_hard_tag',
      ...body,
    })
  const exit = (body: Json) =>
    shop.ok('verifyProtectedItem', { deviceId: shop.devices.exit_gate, protectionAction: 'authorize_exit', ...body })
  const release = async (names: Json, outcome = 'confirmed') => {
    const { replayProtectedNonce } = await detach(names)
    await shop.ok('redeemProtectionAuthorization', {
      replayProtectedNonce,
      deviceId: shop.devices.self_checkout_detacher,
      redemptionId: `rdm-${replayProtectedNonce}`,
      outcome,
    })
  }
  const sell = async (epc: string, { ean } = product(0)) => shop.buy([{ ean, quantity: 1, epcs: [epc] }])
  const product = (n: number): Json => shop.products[n]

  it('puts a released tag on other goods, which are protected and sold like any', async () => {
    const { epc } = await shop.newItem(product(0))
    const { transactionId, items } = await sell(epc)
    await release({ epc })
    expect(await reuse([{ epc, ean: product(1).ean }])).toEqual({ success: true, reused: 1, errors: [] })
    // The new goods are not paid, and the former purchase covers them nowhere.
    expect(await find({ epc })).toMatchObject({ itemStatus: 'sellable', ean: product(1).ean })
    for (const purchase of [{}, { purchaseId: transactionId }]) {
      expect(await exit({ epc, ...purchase })).toMatchObject({ authorized: false, reason: 'item_not_paid' })
      expect(await detach({ epc, ...purchase })).toMatchObject({ authorized: false, reason: 'item_not_paid' })
    }
    // The sold goods keep their purchase: they may leave, and come back.
    expect(await find({ itemLineId: items[0].itemLineId })).toMatchObject({
      itemStatus: 'paid',
      purchaseId: transactionId,
    })
    expect(await exit({ purchaseId: transactionId })).toMatchObject({ authorized: true, itemCount: 1 })
    await shop.ok('refundPayment', { transactionId, lines: [{ itemLineId: items[0].itemLineId }] })
    expect(await find({ epc })).toMatchObject({ itemStatus: 'sellable' })

    await sell(epc, product(1) as { ean: string })
    expect(await find({ epc })).toMatchObject({ itemStatus: 'paid' })
    await release({ epc })
    expect(await reuse([{ epc, ean: product(0).ean }])).toMatchObject({ reused: 1 })
  })

  it('revokes the tokens of the sold goods: they name the tag', async () => {
    const { epc } = await shop.newItem(product(0))
    await sell(epc)
    await release({ epc })
    const { replayProtectedNonce } = await exit({ epc })
    expect(await reuse([{ epc, ean: product(1).ean }])).toMatchObject({ reused: 1 })
    const deviceId = shop.devices.exit_gate
    const redemption = { replayProtectedNonce, deviceId, redemptionId: `rdm-${replayProtectedNonce}` }
    expect(await shop.call('redeemProtectionAuthorization', redemption)).toMatchObject({
      status: 409,
      body: { reason: 'token_revoked' },
    })
  })

  it('reuses a tag whose goods were paid at another till', async () => {
    const tagId = `HT-${newEpc()}`
    const { storeId } = shop
    await shop.ok('registerProtectedItems', { storeId, items: [{ tagId, ean: product(0).ean }] })
    await shop.ok('updateItemStatus', { storeId, tagId, itemStatus: 'paid' })
    await release({ tagId })
    expect(await reuse([{ tagId, ean: product(1).ean }])).toMatchObject({ reused: 1 })
    expect(await detach({ tagId })).toMatchObject({ reason: 'item_not_paid', itemStatus: 'sellable' })
  })

  it('judges each tag alone, and reuses only tags whose release is confirmed', async () => {
    const [sellable, paid, failed, unknown, returned, good] = await Promise.all(
      Array.from({ length: 6 }, async () => (await shop.newItem(product(0))).epc),
    )
    for (const epc of [paid, failed, unknown, returned, good]) await sell(epc as string)
    await release({ epc: failed }, 'failed')
    await release({ epc: unknown }, 'unknown')
    await release({ epc: returned })
    await shop.ok('updateItemStatus', { storeId: shop.storeId, epc: returned, itemStatus: 'returned' })
    await release({ epc: good })
    const ean = product(1).ean as string
    const split = splitGtin14(toGtin14(product(0).ean as string) ?? '', 7)
    const encoded = split && encodeSgtin({ scheme: 'sgtin-96', filter: 1, ...split, serial: `${process.pid}` })
    if (!encoded?.ok) throw new Error('no SGTIN')
    const sgtin = encoded.hex
    await shop.ok('registerProtectedItems', { storeId: shop.storeId, items: [{ epc: sgtin, ean: product(0).ean }] })
    await sell(sgtin)
    await release({ epc: sgtin })
    const tags = [sellable, paid, failed, unknown, returned, newEpc(), good, good].map((epc) => ({ epc, ean }))
    const answer = await reuse([
      ...tags,
      { epc: sgtin, ean },
      { ean },
      { epc: sgtin, ean: '4006381333931' },
      { epc: sgtin, ean: product(0).ean },
    ])
    expect(answer.reused).toBe(2)
    expect(answer.errors.map(({ index, code }: Json) => [index, code])).toEqual([
      ...[0, 1, 2, 3, 4].map((index) => [index, 'release_not_confirmed']),
      [5, 'not-found'],
      [7, 'release_not_confirmed'],
      [8, 'item_mismatch'],
      [9, 'missing'],
      [10, 'product_unknown'],
    ])
  })

  it('writes a true history into EPCIS', async () => {
    const { epc } = await shop.newItem(product(0))
    const { transactionId } = await sell(epc)
    await release({ epc })
    await reuse([{ epc, ean: product(1).ean }])
    const answer = await shop.cloud.call(shop.key, 'exportEpcisEvents', { storeId: shop.storeId })
    const events = (JSON.parse(answer.text) as Json).epcisBody.eventList.filter((event: Json) =>
      JSON.stringify(event.epcList ?? []).includes(epc),
    )
    const steps = events.map(({ action, bizStep, disposition }: Json) => [action, bizStep, disposition])
    expect(steps).toEqual([
      ['ADD', 'commissioning', 'sellable_accessible'],
      ['OBSERVE', 'retail_selling', 'retail_sold'],
      ['OBSERVE', 'removing', 'retail_sold'],
      ['DELETE', 'decommissioning', 'inactive'],
      ['ADD', 'commissioning', 'sellable_accessible'],
    ])
    expect(JSON.stringify(events[3].bizTransactionList)).toContain(transactionId)
    expect(events[4].bizTransactionList).toBeUndefined()
  })
})
