// @module-tag extended
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listen } from '../../../host/http-server.ts'
import { NO_CHROMIUM, startChromium, type TestBrowser } from '../../support/chromium.ts'
import { consoleOf, fillConsole } from '../../support/console.ts'
import { onEveryDatabase } from '../../support/databases.ts'
import { openShop, type Shop } from '../../support/shop.ts'

/** Journeys of several pages, whose statements must give the same on both databases. */
onEveryDatabase('journeys in the console', (kind) => {
  describe.skipIf(NO_CHROMIUM)(NO_CHROMIUM ?? 'in Chromium', () => {
    let shop: Shop
    let chromium: TestBrowser
    let stop: () => Promise<void>
    let page: Page
    let base: string

    beforeAll(async () => {
      shop = await openShop(kind)
      const { accountId } = await fillConsole(shop)
      const server = await listen({ host: '127.0.0.1', port: 0, flag: 'port' })
      server.serve(consoleOf(shop, accountId, undefined, 'admin'))
      base = `http://127.0.0.1:${server.port}`
      stop = () => server.close()
      chromium = await startChromium()
      const context = await chromium.browser.newContext({ reducedMotion: 'reduce' })
      page = await context.newPage()
      await page.goto(`${base}/console?mode=test&store=${shop.storeId}&lang=en`)
    })
    afterAll(async () => {
      await chromium?.close()
      await stop?.()
      await shop?.stop()
    })

    it('changes a rule: replays past decisions, goes back to the form, and publishes', async () => {
      const { storeId } = shop
      const { epc } = await shop.newItem(shop.products[0])
      await shop.buy([{ ean: shop.products[0].ean, quantity: 1, epcs: [epc] }])
      const deviceId = shop.devices.self_checkout_detacher
      await shop.ok('verifyProtectedItem', { deviceId, protectionAction: 'detach_hard_tag', epc })
      const { version } = await shop.ok('fetchProtectionPolicy', { storeId })
      await page.goto(`${base}/console/rules`)
      await page.getByRole('link', { name: 'Change the rules' }).click()
      const limit = page.getByLabel('Items from this price need staff (EUR)')
      await limit.fill('1.50')
      await page.getByRole('button', { name: 'See what changes' }).click()
      await page.getByText('1 of 1 decisions would change').waitFor()
      await page.getByRole('button', { name: 'Change more' }).click()
      expect(await limit.inputValue()).toBe('1.50')
      await page.getByRole('button', { name: 'See what changes' }).click()
      await page.getByRole('button', { name: 'Publish', exact: true }).click()
      await page.getByText('The rules are published').waitFor()
      const after = await shop.ok('fetchProtectionPolicy', { storeId })
      expect([after.version, after.policy.requiresManualOverrideAboveValue]).toEqual([version + 1, 1.5])
    })

    it('takes back one of three pieces without a receipt, found by its tag', async () => {
      const { storeId } = shop
      const [{ ean, name }] = shop.products
      const epcs: string[] = []
      for (let n = 0; n < 3; n++) epcs.push((await shop.newItem(shop.products[0])).epc)
      const lines = [{ ean, quantity: 3, priceUnit: 8_990, vat: 19, epcs }]
      const occurredAt = new Date(shop.cloud.platform.clock.wall()).toISOString()
      await shop.ok('recordSales', { storeId, sales: [{ saleId: '4712', tillId: 'till-3', occurredAt, lines }] })
      await page.goto(`${base}/console/purchases`)
      await page.getByLabel('Find a purchase').fill(epcs[1] ?? '')
      await page.getByLabel('Find a purchase').press('Enter')
      await page.locator('#results a[href*="purchase=pur_"]').first().click()
      await page.getByRole('checkbox', { name }).check()
      await page.getByLabel(`Pieces of ${name}`).fill('1')
      await page.getByRole('button', { name: 'Take back the chosen goods' }).click()
      await page.getByLabel(`Tags on the returned pieces: ${name}`).fill(epcs[1] ?? '')
      await page.getByLabel('The goods go back on sale').check()
      await page.getByRole('button', { name: 'Take back goods for €89.90' }).click()
      await page.getByText('The goods are taken back').waitFor()
      const statuses = []
      for (const epc of epcs) statuses.push((await shop.ok('fetchProtectedItem', { storeId, epc })).itemStatus)
      expect(statuses).toEqual(['paid', 'sellable', 'paid'])
    })
  })
})
