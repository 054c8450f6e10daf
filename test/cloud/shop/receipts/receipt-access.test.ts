// @module-tag extended
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { violations } from '../../../support/axe.ts'
import { NO_CHROMIUM } from '../../../support/chromium.ts'
import { openPageBench, type PageBench } from '../../../support/page-bench.ts'

/** Shoppers pay or open a receipt on a phone at the exit: all amounts must be visible without searching. */
describe.skipIf(NO_CHROMIUM)(`the pages of checkout and receipt (${NO_CHROMIUM ?? 'in Chromium'})`, () => {
  let bench: PageBench
  let receipt: string
  let checkout: string

  beforeAll(async () => {
    bench = await openPageBench()
    const { shop } = bench
    const begin = async () => {
      const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId })
      const names = ['Geschirrspülmaschinenreinigungstabs', 'Kinder-Pullover Streifen, Größe 116', 'x'.repeat(120)]
      return shop.ok('startCheckout', {
        sessionId,
        items: names.map((name) => ({ name, priceUnit: 1_234_567, quantity: 2, vat: 19 })),
      })
    }
    const { transactionId } = await begin()
    const paid = await shop.ok('completeTestCheckout', { transactionId })
    await shop.ok('refundPayment', { purchaseId: transactionId, lines: [{ itemLineId: paid.items[0].itemLineId }] })
    receipt = new URL(paid.receipt.receiptUrl).pathname
    checkout = new URL((await begin()).checkoutUrl).pathname
  })
  afterAll(() => bench?.stop())

  it.each([
    ['de', 320, '74.074,02 €'],
    ['en', 500, '€74,074.02'],
    ['de', 1280, '74.074,02 €'],
  ] as const)('in %s at %i px show every amount, even next to long names', async (lang, width, total) => {
    const context = await bench.chromium.browser.newContext({ viewport: { width, height: 640 } })
    const page = await context.newPage()

    for (const path of [receipt, checkout]) {
      await page.goto(bench.at(`${path}?lang=${lang}`))
      const box = await page.getByText(total).boundingBox()
      expect(box && box.x >= 0 && box.x + box.width <= width).toBe(true)
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
      expect(await violations(page)).toEqual([])
    }
    await context.close()
  })

  it('shows the whole code over the width of a phone without scrolling, also right after the payment', async () => {
    const { shop, chromium } = bench
    const context = await chromium.browser.newContext({ viewport: { width: 390, height: 844 } })
    const page = await context.newPage()
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId })
    const product = shop.products[0]!
    const { epc } = await shop.newItem(product)
    const bought = await shop.ok('startCheckout', {
      sessionId,
      items: [{ ean: product.ean, quantity: 1, epcs: [epc] }],
    })
    await page.goto(bench.at(new URL(bought.checkoutUrl).pathname))
    await page.getByRole('button').first().click()
    for (const path of [undefined, receipt]) {
      if (path !== undefined) await page.goto(bench.at(path))
      const code = page.locator('img.code')
      await code.waitFor()
      const box = await code.boundingBox()
      expect(box).toMatchObject({ x: 0, width: 390 })
      expect([await page.evaluate('scrollY'), box!.y + box!.height <= 844]).toEqual([0, true])
      // The PNG has no margin but the quiet zone of four modules.
      const margin = await page.evaluate<number>(`(() => {
        const img = document.querySelector('img.code'), canvas = document.createElement('canvas')
        canvas.width = img.naturalWidth; canvas.height = img.naturalHeight
        const context = canvas.getContext('2d'); context.drawImage(img, 0, 0)
        const row = context.getImageData(0, img.naturalHeight >> 1, img.naturalWidth, 1).data
        let x = 0; while (row[4 * x] > 128) x++
        return x / img.naturalWidth
      })()`)
      expect(margin).toBeLessThan(0.14)
    }
    await context.close()
  })
})
