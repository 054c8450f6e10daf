import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listen } from '../../bin/http-server.ts'
import { violations } from '../support/axe.ts'
import { NO_CHROMIUM, startChromium, type TestBrowser } from '../support/chromium.ts'
import { openShop, type Shop } from '../support/shop.ts'

/** Who opens a receipt stands at the door with a phone: what was paid must be there without a search for it. */
describe.skipIf(NO_CHROMIUM)(`a receipt’s page (${NO_CHROMIUM ?? 'in Chromium'})`, () => {
  let chromium: TestBrowser
  let shop: Shop
  let server: Awaited<ReturnType<typeof listen>>
  let path: string

  beforeAll(async () => {
    chromium = await startChromium()
    shop = await openShop('sqlite')
    server = await listen({ host: '127.0.0.1', port: 0, flag: 'port' })
    server.serve(shop.cloud.cloud.app)
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId })
    const names = ['Geschirrspülmaschinenreinigungstabs', 'Kinder-Pullover Streifen, Größe 116', 'x'.repeat(120)]
    const items = names.map((name) => ({ name, priceUnit: 1_234_567, quantity: 2, vat: 19 }))
    const { transactionId } = await shop.ok('startCheckout', { sessionId, items })
    const paid = await shop.ok('completeTestCheckout', { transactionId })
    await shop.ok('refundPayment', { purchaseId: transactionId, itemLineIds: [paid.items[0].itemLineId] })
    path = new URL(paid.receipt.receiptUrl).pathname
  })
  afterAll(async () => {
    await chromium?.close()
    await server?.close()
    await shop?.stop()
  })

  it.each([
    ['de', 320, '74.074,02 €'],
    ['en', 500, '€74,074.02'],
    ['de', 1280, '74.074,02 €'],
  ] as const)('in %s at %i px shows every amount, however long a name is', async (lang, width, total) => {
    const context = await chromium.browser.newContext({ viewport: { width, height: 640 } })
    const page = await context.newPage()
    page.setDefaultTimeout(5_000)
    await page.goto(`http://127.0.0.1:${server.port}${path}?lang=${lang}`)
    const box = await page.getByText(total).boundingBox()
    expect(box && box.x >= 0 && box.x + box.width <= width).toBe(true)
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
    expect(await violations(page)).toEqual([])
    await context.close()
  })
})
