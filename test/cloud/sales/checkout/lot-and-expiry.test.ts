import { afterAll, beforeAll, expect, it } from 'vitest'
import { virtualPlatform, type VirtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { newEan, newEpc, openShop, type Shop } from '../../../support/shop.ts'

/** Vector of TDS 2.3: the DSGTIN+ of 79521141123453 with the serial 32a/b and the expiry 220630. */
const DSGTIN = 'FB342CDE795211411234538566CB0AFC4000'

/** Lot, expiry and serial of units: registered, scanned and sold. */
onEveryDatabase('lot, expiry and serial', (kind) => {
  let shop: Shop
  let platform: VirtualPlatform
  let product: Json
  let order: Json
  let reserved: { epc: string }
  beforeAll(async () => {
    // Five minutes before midnight in Hamburg.
    platform = virtualPlatform({ startMs: Date.parse('2026-11-20T22:55:00Z') })
    shop = await openShop(kind, { platform })
    product = shop.products[0]
  })
  afterAll(() => shop.stop())

  const start = async (line: Json) => {
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId })
    return shop.call('startCheckout', { sessionId, items: [{ quantity: 1, ...line }] })
  }
  const register = (item: Json) => shop.ok('registerProtectedItems', { storeId: shop.storeId, items: [item] })
  const fetchItem = (names: Json) => shop.ok('fetchProtectedItem', { storeId: shop.storeId, ...names })
  /** Element string of a unit, with GS behind the lot. */
  const codeOf = (lot: string, expiry: string, serial = '') =>
    `010${product.ean}17${expiry}10${lot}${serial && `\u001d21${serial}`}`

  it('keeps what a registration states, or what its code and its tag contain', async () => {
    const unit = { lot: 'L-1', expiry: '2027-01-31', serial: 'S/1' }
    const stated = newEpc()
    expect(await register({ epc: stated, ean: product.ean, ...unit })).toMatchObject({ registered: 1 })
    expect(await fetchItem({ epc: stated })).toMatchObject(unit)
    const scanned = newEpc()
    // The day 00 is the last of the month (GS1 General Specifications, AI 17).
    await register({ epc: scanned, ean: codeOf('L-1', '270100', 'S/1').replace('\u001d', '|') })
    expect(await fetchItem({ epc: scanned })).toMatchObject({ ...unit, ean: product.ean })
    await register({ epc: DSGTIN })
    expect(await fetchItem({ epc: DSGTIN })).toMatchObject({ expiry: '2022-06-30', serial: '32a/b' })
    // Best before (AI 15) is no expiry.
    const bestBefore = newEpc()
    await register({ epc: bestBefore, ean: `010${product.ean}15200101` })
    expect(await fetchItem({ epc: bestBefore })).not.toHaveProperty('expiry')
  })

  it('forgets them when the tag is on other goods', async () => {
    const { epc } = await shop.newItem(product, { lot: 'L-1', expiry: '2027-01-31', serial: 'S1' })
    await register({ epc, brand: 'Elbtal' })
    expect(await fetchItem({ epc })).toMatchObject({ lot: 'L-1' })
    await register({ epc, ean: shop.products[1].ean })
    const moved = await fetchItem({ epc })
    for (const field of ['lot', 'expiry', 'serial']) expect(moved).not.toHaveProperty(field)
  })

  it.each<[string, () => Json, string, string[]]>([
    ['lot', () => ({ epc: newEpc(), lot: 'A1', ean: codeOf('B2', '270131') }), 'lot', ['A1', 'ean', 'B2']],
    ['expiry', () => ({ epc: DSGTIN, expiry: '2022-07-01' }), 'expiry', ['2022-07-01', 'epc', '2022-06-30']],
    ['serial', () => ({ epc: DSGTIN, serial: '32A/B' }), 'serial', ['32A/B', 'epc', '32a/b']],
  ])('refuses a row that contradicts itself about the %s, and names both', async (_field, row, field, words) => {
    const { errors } = await register(row())
    expect(errors).toMatchObject([{ field, code: 'unit_differs' }])
    for (const word of words) expect(errors[0].message).toContain(word)
  })

  it.each(['2026-02-30', '270131', '31.01.2027'])('refuses the expiry %s', async (expiry) => {
    expect((await start({ ean: product.ean, expiry })).body.details[0].path).toBe('items[0].expiry')
  })

  it('keeps them in the lines of a basket and on the receipt', async () => {
    const unit = { lot: 'L-1', expiry: '2027-01-31', serial: 'S1' }
    const { epc } = await shop.newItem(product, unit)
    const lines = [
      { ean: product.ean, quantity: 1, ...unit },
      { ean: codeOf('L-1', '270131', 'S1'), quantity: 1 },
      { quantity: 1, epcs: [epc] },
    ]
    const { transactionId } = await shop.buy(lines)
    const purchase = await shop.ok('fetchPurchase', { transactionId })
    expect(purchase.receipt.items).toMatchObject([unit, unit, unit])
    const { epc: other } = await shop.newItem(product, { lot: 'L-2', expiry: '2027-01-31' })
    const { epc: same } = await shop.newItem(product, { lot: 'L-1', expiry: '2027-01-31' })
    const { items } = (await start({ quantity: 2, epcs: [other, same] })).body.receipt
    expect(items).toMatchObject([{ expiry: '2027-01-31' }])
    expect(items[0]).not.toHaveProperty('lot')
  })

  it('leaves a deposit without them', async () => {
    const [ean, storeId] = [newEan(), shop.storeId]
    await shop.ok('insertProduct', { storeId, ean, name: 'Wasser', price: 1, vat: 7, deposit: 0.25, tagged: false })
    const { items } = (await start({ ean, lot: 'L-1' })).body.receipt
    expect(items).toMatchObject([{ lot: 'L-1' }, { name: 'Pfand' }])
    expect(items[1]).not.toHaveProperty('lot')
  })

  it('refuses a line that contradicts its code or its tag, and names both', async () => {
    const line = await start({ ean: codeOf('B2', '270131'), lot: 'A1' })
    expect(line).toMatchObject({ status: 400, body: { details: [{ path: 'items[0].lot', code: 'unit_differs' }] } })
    for (const word of ['A1', 'ean', 'B2']) expect(line.body.error).toContain(word)
    const { epc } = await shop.newItem(product, { lot: 'B2' })
    const tag = await start({ ean: product.ean, lot: 'A1', epcs: [epc] })
    expect(tag).toMatchObject({
      status: 409,
      body: { reason: 'item_mismatch', details: [{ path: 'items[0].epcs[0]' }] },
    })
    for (const word of ['A1', 'B2']) expect(tag.body.error).toContain(word)
  })

  it('neither reserves expired units for an order, nor lets staff pick them', async () => {
    const { storeId } = shop
    const ean = newEan()
    const { productId } = await shop.ok('insertProduct', { storeId, ean, name: 'Käse', price: 4, vat: 7, tagged: true })
    const { epc: expired } = await shop.newItem({ ean }, { expiry: '2026-11-19' })
    reserved = await shop.newItem({ ean }, { expiry: '2026-11-20' })
    order = await shop.ok('submitClickCollectOrder', {
      storeId,
      userId: 'shopper-1',
      items: [{ productId, quantity: 1 }],
    })
    expect(order.items[0].reservedTags).toEqual([reserved])
    const pick = { orderId: order.orderId, status: 'confirmed', epcs: [expired] }
    expect(await shop.call('updateClickCollectStatus', pick)).toMatchObject({
      status: 409,
      body: { reason: 'expired' },
    })
  })

  it('sells a unit on its last day in the store’s time zone, and not after; releases a paid one later', async () => {
    const { epc } = await shop.newItem(product, { expiry: '2026-11-20' })
    const { epc: unsold } = await shop.newItem(product, { expiry: '2026-11-20' })
    const { transactionId: purchaseId } = await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId })
    const open = await shop.ok('startCheckout', {
      sessionId,
      items: [{ ean: codeOf('L', '261120'), quantity: 1, epcs: [unsold] }],
    })
    await platform.advance(10 * 60_000)
    // It is 2026-11-20T23:05Z, and 2026-11-21 in Hamburg. What is being paid may still be paid.
    await shop.ok('completeTestCheckout', { transactionId: open.transactionId })
    const expired = { status: 409, body: { reason: 'expired', details: [{ code: 'expired', path: 'items[0]' }] } }
    expect(await start({ ean: product.ean, expiry: '2026-11-20' })).toMatchObject(expired)
    const scanned = await start({ ean: codeOf('L', '261120') })
    expect(scanned).toMatchObject(expired)
    expect(scanned.body.error).toContain('2026-11-20')
    const { epc: another } = await shop.newItem(product, { expiry: '2026-11-20' })
    const { epc: good } = await shop.newItem(product, { expiry: '2026-11-21' })
    expect(await start({ quantity: 2, epcs: [good, another] })).toMatchObject({
      status: 409,
      body: { reason: 'expired', details: [{ path: 'items[0].epcs[1]' }] },
    })
    expect((await start({ quantity: 1, epcs: [good] })).status).toBe(200)
    expect((await start({ ean: `010${product.ean}15261120` })).status).toBe(200)
    for (const [device, protectionAction] of [
      ['self_checkout_detacher', 'detach_hard_tag'],
      ['exit_gate', 'authorize_exit'],
    ] as const) {
      const ask = { deviceId: shop.devices[device], protectionAction, epc, purchaseId }
      expect(await shop.ok('verifyProtectedItem', ask)).toMatchObject({ authorized: true })
    }
  })

  it('hands over what was reserved in time', async () => {
    for (const status of ['confirmed', 'ready', 'picked_up'])
      await shop.ok('updateClickCollectStatus', { orderId: order.orderId, status, epcs: [reserved.epc] })
    expect(await fetchItem(reserved)).toMatchObject({ itemStatus: 'picked_up', expiry: '2026-11-20' })
  })
})
