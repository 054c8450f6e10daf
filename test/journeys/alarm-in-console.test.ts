// @module-tag extended
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { NO_CHROMIUM, startChromium, type TestBrowser } from '../support/chromium.ts'
import { startConsoleJourney, type ConsoleJourney } from '../support/console-journey.ts'
import { onEveryDatabase } from '../support/databases.ts'
import { IS_FULL_SIZE } from '../support/full-size.ts'

const WHY = IS_FULL_SIZE ? NO_CHROMIUM : 'only in full size: UNTAG_TEST_FULL=true'

/** A person carries unpaid goods past the simulated reader of `untag start`, and a guard handles it on a phone. */
describe.skipIf(WHY)(`an alarm at the gate, in the console (${WHY ?? 'in Chromium'})`, () => {
  onEveryDatabase('an alarm', (kind) => {
    let shop: ConsoleJourney
    let chromium: TestBrowser
    let page: Page

    beforeAll(async () => {
      shop = await startConsoleJourney(kind, 'alarm-in-console')
      chromium = await startChromium()
      const context = await chromium.browser.newContext({ viewport: { width: 390, height: 844 }, locale: 'en' })
      page = await context.newPage()
      const stream = page.waitForResponse((response) => response.url().includes('/console/live?') && isOfAlarms(page))
      await shop.signIn(page)
      await page.goto(`${shop.origin}/console/alarms?mode=test&store=${shop.storeId}`)
      await stream
    })
    afterAll(async () => {
      await chromium?.close()
      await shop?.stop()
    })

    const isOfAlarms = (of: Page) => of.url().includes('/console/alarms')
    const open = () =>
      page
        .locator('article[data-alarm].alarm')
        .evaluateAll((cards) => cards.map((card) => card.getAttribute('data-alarm')))
    const figure = (label: string) => page.locator('.figure').filter({ hasText: label }).locator('.value').innerText()

    it('appears by itself, the newest first, sounds, is acknowledged, disposed of and counted', async () => {
      const before = await open()
      const recorded = Number(await figure('Recorded in 24 hours'))
      await page.evaluate(
        `addEventListener('untag:alarm', () => (globalThis.rings = (globalThis.rings ?? 0) + 1), true)`,
      )
      shop.press('u')
      await expect.poll(async () => (await open()).length).toBe(before.length + 1)
      const [first] = await open()
      shop.press('u')
      await expect.poll(async () => (await open()).length).toBe(before.length + 2)
      const [second, ...older] = await open()
      expect(second).not.toBe(first)
      expect(older).toEqual([first, ...before])
      await expect.poll(() => page.evaluate('globalThis.rings')).toBe(2)

      const card = page.locator(`article[data-alarm="${second}"]`)
      expect(await card.innerText()).toMatch(/€[\d.]+[\s\S]*No matching receipt/)
      const takeCare = card.getByRole('button', { name: 'I take care of it' })
      await takeCare.scrollIntoViewIfNeeded()
      const scrolled = await page.evaluate('scrollY')
      await takeCare.click()
      await card.getByText('takes care').waitFor()
      expect(await page.evaluate('scrollY')).toBe(scrolled)
      expect(await open()).toEqual(older)
      // Two taps: the menu, and the cause.
      await card.getByRole('button', { name: 'Record the cause' }).click()
      await card.getByLabel('Value of recovered goods').fill('12,50')
      await card.getByRole('button', { name: 'Theft' }).click()
      await page.getByText('The cause is recorded').waitFor()
      await expect.poll(() => card.count()).toBe(0)
      expect(Number(await figure('Recorded in 24 hours'))).toBe(recorded + 1)
      const row = page.getByRole('row').nth(1)
      expect(await row.innerText()).toMatch(/Theft[\s\S]*€12\.50/)
    })
  })
})
