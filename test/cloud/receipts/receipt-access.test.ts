// @module-tag extended
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { violations } from '../../support/axe.ts'
import { NO_CHROMIUM } from '../../support/chromium.ts'
import { openPageBench, type PageBench } from '../../support/page-bench.ts'

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
})
