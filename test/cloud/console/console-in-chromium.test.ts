import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listen } from '../../../bin/http-server.ts'
import { pages } from '../../../cloud/console/pages/registry.ts'
import { violations } from '../../support/axe.ts'
import { NO_CHROMIUM, startChromium, type TestBrowser } from '../../support/chromium.ts'
import { consoleOf, fillConsole } from '../../support/console.ts'
import { openShop, type Shop } from '../../support/shop.ts'

const IS_FULL = process.env['UNTAG_TEST_FULL'] === 'true'
const COMBINATIONS = [
  ['light', 'de', 1280, 'test'],
  ['dark', 'en', 390, 'live'],
  ['dark', 'de', 390, 'test'],
  ['light', 'en', 390, 'test'],
  ['dark', 'en', 1280, 'test'],
  ['light', 'en', 1280, 'live'],
  ['dark', 'de', 1280, 'live'],
  ['light', 'de', 390, 'live'],
] as const
/** In CI each page is tested in both schemes, languages and sizes. In full size, every combination is. */
const TESTED = IS_FULL ? COMBINATIONS : COMBINATIONS.slice(0, 2)

/** The rules of WCAG 2.2 AA that a program can test, and what only a browser shows. */
describe.skipIf(NO_CHROMIUM)(`the console (${NO_CHROMIUM ?? 'in Chromium'})`, () => {
  let shop: Shop
  let chromium: TestBrowser
  let stop: () => Promise<void>
  let base: string

  beforeAll(async () => {
    shop = await openShop('sqlite')
    const { accountId } = await fillConsole(shop)
    const server = await listen({ host: '127.0.0.1', port: 0, flag: 'port' })
    server.serve(consoleOf(shop, accountId, undefined, 'owner'))
    base = `http://127.0.0.1:${server.port}`
    stop = () => server.close()
    chromium = await startChromium()
  }, 30_000)
  afterAll(async () => {
    await chromium?.close()
    await stop?.()
    await shop?.stop()
  })

  async function open(scheme: 'light' | 'dark', lang: string, width: number, javaScriptEnabled = true) {
    const context = await chromium.browser.newContext({
      colorScheme: scheme,
      viewport: { width, height: width < 600 ? 844 : 800 },
      reducedMotion: 'reduce',
      javaScriptEnabled,
    })
    const page = await context.newPage()
    page.setDefaultTimeout(5_000)
    const problems: string[] = []
    page.on('console', (message) => message.type() === 'error' && problems.push(message.text()))
    page.on('pageerror', (error) => problems.push(error.message))
    page.on('request', (request) => request.url().startsWith(base) || problems.push(request.url()))
    await page.goto(`${base}/console/components?mode=test&store=${shop.storeId}&lang=${lang}`)
    return { page, problems, close: () => context.close() }
  }

  it.each(TESTED)(
    '%s, %s, %i px, %s: every page is accessible and fits',
    async (scheme, lang, width, mode) => {
      const { page, problems, close } = await open(scheme, lang, width)
      for (const { path } of pages.filter((each) => !each.path.includes(':'))) {
        await page.goto(`${base}${path}?mode=${mode}`)
        for (const menu of ['', 'stores', 'account']) {
          if (menu !== '') await page.locator(`[popovertarget=${menu}]`).click()
          problems.push(...(await violations(page)).map((found) => `${path} ${menu}: ${found}`))
          if (menu !== '') await page.keyboard.press('Escape')
          if (!IS_FULL && path !== '/console') break
        }
        const small = await page.evaluate(`[...document.querySelectorAll('a, button, input, select')]
        .filter((each) => each.checkVisibility() && each.type !== 'hidden' && !each.closest('p, label') && !each.matches('.skip, .spoken'))
        .filter((each) => { const box = each.getBoundingClientRect(); return box.height < 38 || (box.height < 44 && !each.closest('.mode')) })
        .map((each) => each.outerHTML.slice(0, 120))`)
        expect([path, small]).toEqual([path, []])
        expect([path, await page.evaluate('document.documentElement.scrollWidth <= innerWidth')]).toEqual([path, true])
      }
      expect(problems).toEqual([])
      await close()
    },
    60_000,
  )

  it('works with the keyboard alone: skip link, menu, switch of the store', async () => {
    const { page, close } = await open('light', 'en', 1280)
    await page.goto(`${base}/console`)
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    expect(await page.evaluate('location.hash')).toBe('#content')
    await page.getByRole('button', { name: 'Change store' }).focus()
    await page.keyboard.press('Enter')
    const stores = page.getByRole('dialog', { name: 'Change store' })
    await stores.waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.waitForURL(/store=/)
    await close()
  })

  it('shows a new request for help without a reload', async () => {
    const { page, problems, close } = await open('light', 'en', 1280)
    const stream = page.waitForResponse((response) => response.url().includes('/console/live'))
    await page.goto(`${base}/console?store=${shop.storeId}`)
    await stream
    const row = page.getByRole('listitem').filter({ hasText: 'Help calls' })
    await expect.poll(() => row.locator('.badge').innerText()).toBe('1')
    const { zones } = await shop.ok('fetchZones', { storeId: shop.storeId })
    await shop.ok('requestAssistance', { zoneId: zones[0].zoneId, message: 'Hallo?' })
    await expect.poll(() => row.locator('.badge').innerText(), { timeout: 5_000 }).toBe('2')
    expect(problems).toEqual([])
    await close()
  }, 20_000)

  it.each([
    ['with', true],
    ['without', false],
  ])('asks before it revokes an agent, %s scripts', async (_, hasScripts) => {
    const { page, close } = await open('dark', 'en', 390, hasScripts)
    await page.goto(`${base}/console/agents?store=${shop.storeId}`)
    const rows = page.getByRole('row').filter({ has: page.getByRole('button', { name: 'Revoke', exact: true }) })
    const before = await rows.count()
    await rows.first().getByRole('button', { name: 'Revoke', exact: true }).click()
    const question = page.getByRole('dialog')
    await question.getByRole('button', { name: 'Back' }).click()
    expect(await rows.count()).toBe(before)
    await rows.first().getByRole('button', { name: 'Revoke', exact: true }).click()
    await question.getByRole('button', { name: 'Revoke' }).click()
    await page.getByText('The agent is revoked').waitFor()
    await expect.poll(() => rows.count()).toBe(before - 1)
    await close()
  })

  it('shows a rejected form with the cursor in the wrong field', async () => {
    const { page, close } = await open('light', 'de', 390)
    await page.getByLabel('Menge').fill('keine Zahl')
    await page.getByRole('button', { name: 'Speichern' }).click()
    await page.getByText('Prüfen Sie die markierten Felder.').waitFor()
    expect(await page.getByLabel('Menge').inputValue()).toBe('keine Zahl')
    await expect.poll(() => page.evaluate('document.activeElement.name')).toBe('limit')
    await close()
  })
})
