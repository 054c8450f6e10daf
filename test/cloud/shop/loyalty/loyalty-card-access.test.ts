// @module-tag extended
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { violations } from '../../../support/axe.ts'
import { NO_CHROMIUM } from '../../../support/chromium.ts'
import { openPageBench, type PageBench } from '../../../support/page-bench.ts'

/** Customers open their card on a phone at the till. */
describe.skipIf(NO_CHROMIUM)(`the page of a loyalty card (${NO_CHROMIUM ?? 'in Chromium'})`, () => {
  let bench: PageBench
  let card: string

  beforeAll(async () => {
    bench = await openPageBench()
    const { shop } = bench
    const { programId } = await shop.ok('createLoyaltyProgram', {
      storeId: shop.storeId,
      name: 'Geschirrspülmaschinenreinigungstabs-Freundeskreis',
      type: 'stamps',
      rewards: [
        { name: 'Ein Heißgetränk', cost: 2 },
        { name: 'x'.repeat(120), cost: 10 },
      ],
    })
    const { cardCode } = await shop.ok('issueLoyaltyCard', { programId, userId: 'shopper-1' })
    await shop.ok('addLoyaltyPoints', { programId, cardCode, amount: 3 })
    card = `/l/${cardCode}`
  })
  afterAll(() => bench?.stop())

  it.each([
    ['de', 320, 'light'],
    ['en', 1280, 'dark'],
  ] as const)('in %s at %i px, %s, is accessible and fits', async (lang, width, colorScheme) => {
    const context = await bench.chromium.browser.newContext({ viewport: { width, height: 640 }, colorScheme })
    const page = await context.newPage()

    await page.goto(bench.at(`${card}?lang=${lang}`))
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
    expect(await violations(page)).toEqual([])
    await context.close()
  })
})
