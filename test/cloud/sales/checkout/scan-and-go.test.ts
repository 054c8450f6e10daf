import { PNG } from 'pngjs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { addDays, dayOf } from '../../../../cloud/shop/analytics/store-days.ts'
import { virtualPlatform, type VirtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { readQr } from '../../../support/qr.ts'
import { newEpc, openShop, type Shop } from '../../../support/shop.ts'

onEveryDatabase('scan and go', (kind) => {
  let shop: Shop
  let platform: VirtualPlatform
  let wine: Json
  let operatorId: string
  beforeAll(async () => {
    platform = virtualPlatform({ startMs: Date.parse('2026-11-20T09:00:00Z') })
    shop = await openShop(kind, { platform })
    const { products } = await shop.ok('fetchProducts', { storeId: shop.storeId, limit: 500 })
    wine = products.find((p: Json) => p.flags.requiresHumanVerification)
    operatorId = (await shop.ok('registerOperator', { storeId: shop.storeId, name: 'Frau Petersen' })).operatorId
  })
  afterAll(() => shop.stop())

  async function start(items: Json[], userId?: string): Promise<Json> {
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId, ...(userId && { userId }) })
    return shop.ok('startCheckout', { sessionId, items })
  }
  const shirt = () => ({ ean: shop.products[0].ean, quantity: 1 })
  const statusOf = async (transactionId: string) => (await shop.ok('fetchPurchase', { transactionId })).status

  it('finds no product by a code of another kind, in baskets, orders and items', async () => {
    const { storeId } = shop
    const { sessionId } = await shop.ok('checkIn', { storeId })
    for (const ean of ['123456789012345', '(01)04006381333931(21)A', 'x'.repeat(128)]) {
      const unknown = { status: 400, body: { details: [{ path: 'items[0].ean', code: 'product_unknown' }] } }
      expect(await shop.call('startCheckout', { sessionId, items: [{ ean, quantity: 1 }] })).toMatchObject(unknown)
      expect(
        await shop.call('submitClickCollectOrder', { storeId, userId: 'u', items: [{ ean, quantity: 1 }] }),
      ).toMatchObject(unknown)
      expect(
        (await shop.ok('registerProtectedItems', { storeId, items: [{ tagId: 'scanned-1', ean }] })).errors,
      ).toMatchObject([{ field: 'ean', code: 'product_unknown' }])
    }
  })

  it('returns the logo of the store with its purchases', async () => {
    const logoOf = async () => {
      const { transactionId } = await start([shirt()])
      const { storeData } = (await shop.ok('fetchPurchase', { transactionId })).receipt
      expect((await shop.ok('verifySecurityTagDeactivation', { purchaseId: transactionId })).storeData).toEqual(
        storeData,
      )
      return storeData.logo
    }
    expect(await logoOf()).toBe(undefined)
    await shop.ok('updateStore', { storeId: shop.storeId, media: { logo: 'https://hafenkante.example/logo.png' } })
    expect(await logoOf()).toBe('https://hafenkante.example/logo.png')
    await shop.ok('updateStore', { storeId: shop.storeId, media: { cover: 'https://hafenkante.example/cover.png' } })
    expect(await logoOf()).toBe(undefined)
  })

  it('requires staff approval for age-restricted goods before payment', async () => {
    const waiting = await start([{ ean: wine.ean, quantity: 1 }])
    expect(waiting).toMatchObject({ status: 'CREATED', awaitingApproval: true, approvalReason: 'age' })
    const { transactionId } = waiting
    expect(await shop.call('completeTestCheckout', { transactionId })).toMatchObject({
      status: 409,
      body: { reason: 'awaiting_approval' },
    })
    expect((await shop.cloud.get(new URL(waiting.checkoutUrl).pathname)).text).toContain('Please wait')
    // The payment time starts after approval.
    await platform.advance(45 * 60_000)
    expect(await statusOf(transactionId)).toBe('CREATED')
    expect(await shop.ok('approveCheckout', { transactionId, operatorId })).toMatchObject({ status: 'PENDING_PAYMENT' })
    expect(await shop.call('approveCheckout', { transactionId, operatorId })).toMatchObject({
      status: 409,
      body: { reason: 'not_awaiting_approval' },
    })
    expect(await shop.ok('completeTestCheckout', { transactionId })).toMatchObject({ status: 'SUCCESS' })
  })

  it('cancels baskets that staff reject or the shopper abandons', async () => {
    const refused = await start([{ ean: wine.ean, quantity: 1 }])
    expect(
      await shop.ok('approveCheckout', { transactionId: refused.transactionId, operatorId, approved: false }),
    ).toMatchObject({ status: 'CANCELLED' })
    const left = await start([{ ean: wine.ean, quantity: 1 }])
    expect(await shop.ok('markPurchaseCancelled', { purchaseId: left.transactionId })).toMatchObject({
      status: 'CANCELLED',
    })
    const ended = await start([{ ean: wine.ean, quantity: 1 }])
    expect(
      await shop.ok('completeTestCheckout', { transactionId: ended.transactionId, result: 'cancelled' }),
    ).toMatchObject({ status: 'CANCELLED' })
  })

  it('selects baskets for spot checks at the store’s rate', async () => {
    const { policy } = await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })
    await shop.ok('updateProtectionPolicy', { storeId: shop.storeId, policy: { ...policy, spotCheckRate: 1 } })
    expect(await start([shirt()])).toMatchObject({ status: 'CREATED', approvalReason: 'spot_check' })
    await shop.ok('updateProtectionPolicy', { storeId: shop.storeId, policy: { ...policy, spotCheckRate: 0 } })
    expect((await start([shirt()])).status).toBe('PENDING_PAYMENT')
  })

  it('a spot check stays due until staff approve, even if the shopper starts again', async () => {
    const { storeId } = shop
    const { policy } = await shop.ok('fetchProtectionPolicy', { storeId })
    const setRate = (spotCheckRate: number) =>
      shop.ok('updateProtectionPolicy', { storeId, policy: { ...policy, spotCheckRate } })
    const visit = async (userId?: string): Promise<string> =>
      (await shop.ok('checkIn', { storeId, ...(userId && { userId }) })).sessionId
    const checkout = (sessionId: string, more: Json = {}) =>
      shop.ok('startCheckout', { sessionId, items: [shirt()], ...more })
    const isChecked = async (sessionId: string, more?: Json) =>
      (await checkout(sessionId, more)).approvalReason === 'spot_check'

    const passed = await visit('shopper-81')
    expect((await checkout(passed)).status).toBe('PENDING_PAYMENT')
    await setRate(1)
    const session = await visit('shopper-82')
    const nobodys = await visit()
    const first = await checkout(session)
    expect([first.approvalReason, await isChecked(nobodys)]).toEqual(['spot_check', true])
    // From now on, the random draw selects practically no checkout.
    await setRate(1e-7)
    expect(await isChecked(session)).toBe(true)
    expect(await isChecked(session, { items: [{ ...shirt(), quantity: 2 }] })).toBe(true)
    await shop.ok('completeTestCheckout', { transactionId: first.transactionId, result: 'cancelled' })
    expect(await Promise.all([isChecked(session), isChecked(nobodys)])).toEqual([true, true])
    const refused = await checkout(session)
    await shop.ok('approveCheckout', { transactionId: refused.transactionId, operatorId, approved: false })
    const again = await visit('shopper-82')
    expect([
      await isChecked(session),
      await isChecked(again),
      await isChecked(await visit(), { userId: 'shopper-82' }),
    ]).toEqual([true, true, true])
    expect([
      await isChecked(passed),
      await isChecked(await visit('shopper-83')),
      await isChecked(await visit()),
    ]).toEqual([false, false, false])

    const { transactionId } = await checkout(again)
    expect(await shop.ok('approveCheckout', { transactionId, operatorId })).toMatchObject({ status: 'PENDING_PAYMENT' })
    expect(await shop.ok('completeTestCheckout', { transactionId })).toMatchObject({ status: 'SUCCESS' })
    // Staff approved a basket of this shopper, so later checkouts of this shopper need no approval.
    expect([
      await isChecked(again),
      await isChecked(session),
      await isChecked(await visit('shopper-82')),
      await isChecked(nobodys),
    ]).toEqual([false, false, false, true])
    await setRate(0)
    expect(await isChecked(nobodys)).toBe(false)
  })

  describe('a purchase without its number', () => {
    const find = async (filter: Json): Promise<string[]> =>
      (await shop.ok('fetchPurchaseHistory', { storeId: shop.storeId, limit: 500, ...filter })).purchases.map(
        (purchase: Json) => purchase.transactionId,
      )

    it('is found by EAN, tag, day and total, also in the older form', async () => {
      const [jacket, other] = [shop.products[4], shop.products[5]]
      const tagId = `HT-${newEpc()}`
      const { epc } = await shop.newItem(jacket, { tagId })
      const sold = await shop.buy([{ ean: jacket.ean, quantity: 1, epcs: [epc] }])
      const { transactionId } = sold
      const another = (await shop.buy([{ ean: other.ean, quantity: 1 }])).transactionId
      const day = dayOf(sold.receipt.completedAt)
      const { totalCent } = sold.receipt
      const byEan = await find({ ean: jacket.ean })
      expect([byEan.includes(transactionId), byEan.includes(another)]).toEqual([true, false])
      expect(await find({ ean: jacket.ean.padStart(14, '0') })).toEqual(byEan)
      for (const tag of [epc, epc.toLowerCase(), tagId]) expect(await find({ tag })).toEqual([transactionId])
      const byTotal = await find({ day, totalCent })
      expect([byTotal.includes(transactionId), byTotal.includes(another)]).toEqual([true, jacket.price === other.price])
      expect(await find({ day: addDays(day, 1), totalCent })).not.toContain(transactionId)
      expect(await find({ tag: epc, totalCent: totalCent + 1 })).toEqual([])
      expect(await find({ tag: 'HT-nobody' })).toEqual([])
      expect(await find({ ean: '4000000000006' })).toEqual([])
      const headers = { authorization: `Bearer ${shop.key}` }
      const query = `fetchPurchaseHistory?day=${day}&totalCent=${totalCent}&ean=${jacket.ean}&tag=${tagId}&offset=0`
      expect((await shop.cloud.get(`/api/v1/${query}`, headers)).body.data.map((p: Json) => p.id)).toEqual([
        transactionId,
      ])
    })

    it('is found by the end of its number, and by its total alone; a wrong number or day is refused', async () => {
      const { transactionId, total } = await shop.buy([{ ean: shop.products[4].ean, quantity: 3 }])
      const totalCent = Math.round(total * 100)
      for (const filter of [{ number: transactionId.slice(-6).toLowerCase() }, { number: transactionId.slice(4) }])
        expect(await find(filter)).toEqual([transactionId])
      expect(await find({ totalCent })).toContain(transactionId)
      expect(await find({ number: transactionId.slice(-6), totalCent: totalCent + 1 })).toEqual([])
      const call = (filter: Json) => shop.call('fetchPurchaseHistory', { storeId: shop.storeId, ...filter })
      for (const number of ['ABC', '%%%%%%', 'ABCDE_', 'I23456'])
        expect(await call({ number })).toMatchObject({ status: 400, body: { details: [{ path: 'number' }] } })
      expect((await call({ day: '2026-02-30' })).status).toBe(400)
    })

    it('is found after its goods were returned', async () => {
      const { epc } = await shop.newItem(shop.products[4])
      const { transactionId, items } = await shop.buy([{ ean: shop.products[4].ean, quantity: 1, epcs: [epc] }])
      await shop.ok('refundPayment', { transactionId, lines: [{ itemLineId: items[0].itemLineId }] })
      expect(await find({ tag: epc })).toEqual([transactionId])
    })
  })

  it('a missed spot check does not apply on another day', async () => {
    const { storeId } = shop
    const { policy } = await shop.ok('fetchProtectionPolicy', { storeId })
    await shop.ok('updateProtectionPolicy', { storeId, policy: { ...policy, spotCheckRate: 1 } })
    expect(await start([shirt()], 'shopper-84')).toMatchObject({ approvalReason: 'spot_check' })
    await shop.ok('updateProtectionPolicy', { storeId, policy: { ...policy, spotCheckRate: 1e-7 } })
    expect(await start([shirt()], 'shopper-84')).toMatchObject({ approvalReason: 'spot_check' })
    platform.sleep(49 * 3_600_000)
    expect((await start([shirt()], 'shopper-84')).status).toBe('PENDING_PAYMENT')
    await shop.ok('updateProtectionPolicy', { storeId, policy: { ...policy, spotCheckRate: 0 } })
  })

  it('cancels a payment after 30 minutes without payment, and no other', async () => {
    const early = await start([shirt()])
    const paid = await start([shirt()])
    await shop.ok('completeTestCheckout', { transactionId: paid.transactionId })
    await platform.advance(20 * 60_000)
    const late = await start([shirt()])
    await platform.advance(12 * 60_000)
    // Late payments are rejected even before the job runs.
    expect(await shop.call('completeTestCheckout', { transactionId: early.transactionId })).toMatchObject({
      status: 409,
      body: { reason: 'checkout_ended' },
    })
    // The database responds in real time, while the virtual clock has moved.
    const aMinuteLater = async () => {
      await platform.advance(61_000)
      return statusOf(early.transactionId)
    }
    await expect.poll(aMinuteLater).toBe('CANCELLED')
    expect(await Promise.all([paid, late].map((p) => statusOf(p.transactionId)))).toEqual([
      'SUCCESS',
      'PENDING_PAYMENT',
    ])
  })

  it('lists purchases, the newest first, in pages that neither skip nor repeat during new purchases', async () => {
    const made: string[] = []
    for (let i = 0; i < 7; i++) {
      await platform.advance(10)
      made.unshift((await start([shirt()], 'u-history')).transactionId)
    }
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const page = await shop.ok('fetchPurchaseHistory', { userId: 'u-history', limit: 2, ...(cursor && { cursor }) })
      seen.push(...page.purchases.map((p: Json) => p.transactionId))
      cursor = page.nextCursor
      await platform.advance(10)
      await start([shirt()], 'u-history')
    } while (cursor !== undefined)
    expect(seen).toEqual(made)
    expect(
      (await shop.ok('fetchPurchaseHistory', { userId: 'u-history', offset: 9, limit: 500 })).purchases,
    ).toHaveLength(2)
    const first = await shop.ok('fetchPurchaseHistory', { userId: 'u-history', limit: 1 })
    expect(first).toMatchObject({ total: 11, purchases: [{ receipt: { items: [{ name: shop.products[0].name }] } }] })
    expect(first.purchases[0].receipt.receiptQrCode).toBeUndefined()
    expect((await shop.ok('fetchPurchaseHistory', { storeId: shop.otherStoreId })).purchases).toEqual([])
    expect((await shop.call('fetchPurchaseHistory', { limit: 1, offset: 0, cursor: 'x' })).status).toBe(400)
    const older = await shop.cloud.get('/api/v1/fetchPurchaseHistory?userId=u-history', {
      authorization: `Bearer ${shop.key}`,
    })
    expect(older.body).toMatchObject({ success: true, total: 11 })
    expect(older.body.data[0]).toMatchObject({ userId: 'u-history', totalCent: expect.any(Number) })
    const stranger = await shop.cloud.key('secret', 'test', { account: 'Stranger' })
    expect(await shop.cloud.ok(stranger, 'fetchPurchaseHistory', { userId: 'u-history' })).toMatchObject({
      purchases: [],
      total: 0,
    })
    const bound = await shop.cloud.key('secret', 'test', { storeIds: [shop.otherStoreId] })
    expect(await shop.cloud.ok(bound, 'fetchPurchaseHistory', {})).toMatchObject({ purchases: [], total: 0 })
  })

  it.each(['checkin', 'payment', 'profile'])('draws the %s code of a store', async (type) => {
    for (const size of [64, 512, 2_048]) {
      const { codes } = await shop.ok('generateCodes', { storeId: shop.storeId, type, size })
      const png = Buffer.from(codes[0].imageBase64, 'base64')
      if (size < 1_000) expect(readQr(png)).toBe(`untag://${type}/${shop.storeId}`)
      expect(codes[0].data).toBe(`untag://${type}/${shop.storeId}`)
      const { width, height } = PNG.sync.read(png)
      // 33 modules and a margin of 4 on each side, each at least 3 pixels wide.
      const drawn = Math.max(size, (33 + 8) * 3)
      expect([width, height]).toEqual([drawn, drawn])
    }
  })

  it('shows the source of each line’s price to the merchant and not to the public', async () => {
    const { transactionId, items } = await shop.buy([
      shirt(),
      { name: 'Tragetasche', priceUnit: 50, quantity: 2, vat: 19 },
    ])
    const origins = (lines: Json[]) => lines.map(({ priceOrigin }) => priceOrigin)
    const { receipt } = await shop.ok('fetchPurchase', { transactionId })
    expect([origins(items), origins(receipt.items)]).toEqual([
      ['catalogue', 'client'],
      ['catalogue', 'client'],
    ])
    const { token } = await shop.ok('generateReceiptWithQR', { purchaseId: transactionId })
    expect((await shop.cloud.get(`/api/v1/getReceiptFromToken?token=${token}`)).text).not.toContain('priceOrigin')
  })

  it('returns a receipt as JSON, page or text, depending on the request', async () => {
    const { transactionId } = await shop.buy([shirt(), { name: 'Tragetasche', priceUnit: 50, quantity: 2, vat: 19 }])
    const { token } = await shop.ok('generateReceiptWithQR', { purchaseId: transactionId })
    const read = (accept?: string) =>
      shop.cloud.get(`/api/v1/getReceiptFromToken?token=${token}`, accept === undefined ? {} : { accept })
    for (const accept of [undefined, '*/*', 'application/json', 'application/json, text/html'])
      expect((await read(accept)).body).toMatchObject({ success: true, id: transactionId })
    const page = await read('text/html,application/xhtml+xml,*/*')
    expect(page.headers.get('content-type')).toContain('text/html')
    expect(page.text).toContain('Tragetasche')
    const text = await read('text/plain')
    expect(text.headers.get('content-type')).toContain('text/plain')
    expect(text.text).toMatch(/^Tragetasche +1,00\n {2}2 x 0,50$/m)
    expect(text.text).toMatch(/^SUMME EUR +[\d.,]+$/m)
    expect(text.text.split('\n').every((line) => line.length <= 48)).toBe(true)
    expect((await shop.cloud.get('/api/v1/getReceiptFromToken?token=nonsense', { accept: 'text/plain' })).status).toBe(
      404,
    )
  })

  it('logs no error', () => expect(shop.cloud.errors).toEqual([]))
})
