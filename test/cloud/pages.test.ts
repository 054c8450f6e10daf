import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { qrPng } from '../../cloud/receipts/qr-code.ts'
import type { Json } from '../support/cloud.ts'
import { readQr } from '../support/qr.ts'
import { openShop, type Shop } from '../support/shop.ts'

describe('receipts and the test checkout', () => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop('sqlite')
  })
  afterAll(() => shop.stop())

  const checkout = async () => {
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId, userId: 'shopper-<script>' })
    return shop.ok('startCheckout', { sessionId, items: [{ ean: shop.products[0].ean, quantity: 2 }, { name: '<b>Tüte</b>', priceUnit: 25, quantity: 1, vat: 19 }] })
  }
  const press = (url: string, result: string) =>
    shop.cloud.cloud.app.request(new URL(url).pathname, { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: `result=${result}` })

  it('pays on the page, once, and then leads to the receipt', async () => {
    const { checkoutUrl, transactionId } = await checkout()
    const page = await shop.cloud.get(new URL(checkoutUrl).pathname)
    expect(page.text).toContain('Bezahlen')
    expect((await press(checkoutUrl, 'paid')).status).toBe(303)
    expect(await shop.ok('fetchPurchase', { transactionId })).toMatchObject({ status: 'SUCCESS' })
    await press(checkoutUrl, 'cancelled')
    expect(await shop.ok('fetchPurchase', { transactionId })).toMatchObject({ status: 'SUCCESS' })
    expect((await shop.cloud.get(new URL(checkoutUrl).pathname)).text).toContain('Zum Beleg')
  })

  it.each(['declined', 'cancelled'])('can be %s', async (result) => {
    const { checkoutUrl, transactionId } = await checkout()
    await press(checkoutUrl, result)
    expect(await shop.ok('fetchPurchase', { transactionId })).toMatchObject({ status: 'CANCELLED' })
    expect((await shop.call('completeTestCheckout', { transactionId })).status).toBe(409)
  })

  it('knows no other checkout and no other result', async () => {
    const { checkoutUrl } = await checkout()
    expect((await press('https://shop.example/checkout/chk_nobody', 'paid')).status).toBe(404)
    expect((await press(checkoutUrl, 'free')).status).toBe(404)
  })

  it('draws a QR code that jsqr reads, the same one on every reprint', async () => {
    const { transactionId } = await checkout()
    await shop.ok('completeTestCheckout', { transactionId })
    const [first, again] = [await shop.ok('generateReceiptQR', { purchaseId: transactionId }), await shop.ok('generateReceiptQR', { purchaseId: transactionId })]
    expect(readQr(Buffer.from(first.imageBase64, 'base64'))).toBe(first.url)
    expect(first.url).toBe(`HTTPS://SHOP.EXAMPLE/R/${first.token}`)
    expect({ ...again }).toEqual({ ...first })
  })

  it('draws codes of any length and size', () => {
    for (const [text, size] of [['A', 64], ['HTTPS://SHOP.EXAMPLE/R/'.padEnd(600, 'A'), 512], ['grüße', 300]] as const) expect(readQr(qrPng(text, size))).toBe(text)
  })

  it('shows the receipt to whoever has it: as JSON with everything, as a page that escapes what is in it', async () => {
    const { transactionId } = await checkout()
    await shop.ok('completeTestCheckout', { transactionId })
    const { url, token } = await shop.ok('generateReceiptQR', { purchaseId: transactionId })
    const { body } = await shop.cloud.get(`/api/v1/getReceiptFromToken?token=${encodeURIComponent(url)}`)
    const price = Math.round(shop.products[0].price * 100)
    expect(body).toMatchObject({ success: true, id: transactionId, totalCent: price * 2 + 25, tse: { state: 'simulated' }, status: 'SUCCESS' })
    const vat = Object.values(body.vatBreakdown) as Json[]
    expect(vat.reduce((sum: number, { net, tax }) => sum + net + tax, 0)).toBe(body.totalCent)
    expect(JSON.stringify(body)).not.toContain('shopper-')
    const page = await shop.cloud.get(`/R/${token}`)
    expect(page.text).toContain('&lt;b&gt;Tüte')
    expect(page.text).not.toContain('<b>Tüte')
    expect((await shop.cloud.get(`/R/${token.slice(0, -8)}AAAAAAAA`)).status).toBe(404)
    expect((await shop.cloud.get('/api/v1/getReceiptFromToken?token=x')).status).toBe(404)
    expect((await shop.cloud.get('/api/v1/getReceiptFromToken')).status).toBe(400)
  })

  it('has no receipt before it is paid', async () => {
    const { transactionId } = await checkout()
    expect(await shop.call('generateReceiptQR', { purchaseId: transactionId })).toMatchObject({ status: 409, body: { reason: 'purchase_not_paid' } })
  })
})
