// @module-tag extended
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listen } from '../../../host/http-server.ts'
import { pages } from '../../../cloud/console/pages/registry.ts'
import { galleryPage } from '../../support/console-gallery/gallery.tsx'
import { violations } from '../../support/axe.ts'
import { NO_CHROMIUM, startChromium, type TestBrowser } from '../../support/chromium.ts'
import { consoleOf, fillConsole } from '../../support/console.ts'
import { IS_FULL_SIZE } from '../../support/full-size.ts'
import { PROXIES } from '../../support/proxies.ts'
import { openShop, type Shop } from '../../support/shop.ts'

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
/** In CI each page is tested in one of two combinations, which together have all values. In full size it is in all. */
const TESTED = IS_FULL_SIZE ? COMBINATIONS : COMBINATIONS.slice(0, 2)
/** Pages of an owner. test/journeys/platform-admin.test.ts tests those of the people who run the cloud. */
const PAGES = [...pages, galleryPage]
  .filter(({ path, roles }) => roles.includes('owner') && !path.includes(':'))
  .map(({ path }) => path)
const pagesOf = (nth: number) => (IS_FULL_SIZE ? PAGES : PAGES.filter((_, i) => i % TESTED.length === nth))

/** The rules of WCAG 2.2 AA that a program can test, and what only a browser shows. */
describe.skipIf(NO_CHROMIUM)(`the console (${NO_CHROMIUM ?? 'in Chromium'})`, () => {
  let shop: Shop
  let chromium: TestBrowser
  let stop: () => Promise<void>
  let base: string
  let accountId: string

  beforeAll(async () => {
    shop = await openShop('sqlite')
    ;({ accountId } = await fillConsole(shop))
    const server = await listen({ host: '127.0.0.1', port: 0, flag: 'port' })
    server.serve(consoleOf(shop, accountId, [...pages, galleryPage], 'owner'))
    base = `http://127.0.0.1:${server.port}`
    stop = () => server.close()
    chromium = await startChromium()
  })
  afterAll(async () => {
    await chromium?.close()
    await stop?.()
    await shop?.stop()
  })

  async function open(
    scheme: 'light' | 'dark',
    lang: string,
    width: number,
    { path = '/console', javaScriptEnabled = true } = {},
  ) {
    const context = await chromium.browser.newContext({
      colorScheme: scheme,
      viewport: { width, height: width < 600 ? 844 : 800 },
      reducedMotion: 'reduce',
      javaScriptEnabled,
    })
    const page = await context.newPage()

    const problems: string[] = []
    page.on('console', (message) => message.type() === 'error' && problems.push(message.text()))
    page.on('pageerror', (error) => problems.push(error.message))
    page.on('request', (request) => request.url().startsWith(base) || problems.push(request.url()))
    await page.goto(`${base}${path}?mode=test&store=${shop.storeId}&lang=${lang}`)
    return { page, problems, close: () => context.close() }
  }

  it.each(TESTED.map((combination, nth) => [...combination, pagesOf(nth)] as const))(
    '%s, %s, %i px, %s: pages are accessible and fit',
    async (scheme, lang, width, mode, paths) => {
      const { page, problems, close } = await open(scheme, lang, width)
      for (const path of paths) {
        await page.goto(`${base}${path}?mode=${mode}`)
        for (const menu of ['', 'stores', 'account']) {
          if (menu !== '') await page.locator(`[popovertarget=${menu}]`).click()
          problems.push(...(await violations(page)).map((found) => `${path} ${menu}: ${found}`))
          if (menu !== '') await page.keyboard.press('Escape')
          if (!IS_FULL_SIZE && path !== '/console') break
        }
        const small = await page.evaluate(`[...document.querySelectorAll('a, button, input, select')]
        .filter((each) => each.checkVisibility() && each.type !== 'hidden' && !each.closest('p, label') && !each.matches('.skip, .spoken'))
        .filter((each) => { const box = each.getBoundingClientRect(); return box.height < 38 || (box.height < 44 && !each.closest('.mode, .side')) })
        .map((each) => each.outerHTML.slice(0, 120))`)
        expect([path, small]).toEqual([path, []])
        expect([path, await page.evaluate('document.documentElement.scrollWidth <= innerWidth')]).toEqual([path, true])
      }
      expect(problems).toEqual([])
      await close()
    },
  )

  it('has no scrollbar on a short page, and two or four columns of orders', async () => {
    const { page, problems, close } = await open('light', 'en', 1280, { path: '/console/tags' })
    expect(await page.evaluate('document.documentElement.scrollHeight - innerHeight')).toBe(0)
    for (const [width, columns] of [
      [390, 1],
      [1024, 2],
      [1280, 4],
    ] as const) {
      await page.setViewportSize({ width, height: 800 })
      await page.goto(`${base}/console/orders`)
      const lefts = `[...document.querySelectorAll('.board > section')].map((each) => each.getBoundingClientRect().left)`
      expect([width, new Set(await page.evaluate<number[]>(lefts)).size]).toEqual([width, columns])
    }
    // A swap copies no inline style, which the policy of the page refuses.
    await page.goto(`${base}/console/alarms?store=${shop.storeId}`)
    await page.evaluate(`(document.querySelector('#alarms').style.top = '0px',
      htmx.ajax('GET', location.href, { target: '#alarms', select: '#alarms', source: '#alarms', swap: 'outerHTML' }))`)
    await page.waitForLoadState('networkidle')
    expect(problems).toEqual([])
    await close()
  })

  it('has labels and fields of a search at one height, and the whole menu in view', async () => {
    const { page, close } = await open('light', 'en', 1280, { path: '/console/purchases' })
    const spread = (selector: string, side: 'top' | 'bottom') =>
      page.evaluate<number>(`(() => {
        const ends = [...document.querySelectorAll('${selector}')].map((each) => each.getBoundingClientRect().${side})
        return ends.length < 2 ? NaN : Math.max(...ends) - Math.min(...ends)
      })()`)
    expect(await spread('.filters label', 'top')).toBeLessThan(1)
    expect(await spread('.filters :is(input, .button)', 'bottom')).toBeLessThan(2)
    const entries = `[...document.querySelectorAll('.side :is(.nav-link, summary)')].filter((each) => each.checkVisibility())`
    const last = `${entries}.at(-1).getBoundingClientRect().bottom`
    expect(await page.evaluate(last)).toBeLessThan(800)
    await close()
  })

  it('shows the address of the purchase alone after a refund', async () => {
    const items = [{ productId: shop.products[0].productId, quantity: 2 }]
    const { transactionId, items: lines } = await shop.buy(items)
    const purchase = `/console/purchases?purchase=${transactionId}`
    const lineId = lines[0].itemLineId
    const asked = `${purchase}&line=${lineId}&quantity-${lineId}=1&confirm=lines`
    const { page, close } = await open('light', 'en', 1280)
    await page.goto(`${base}${asked}`)
    await page.getByRole('button', { name: /^Refund .* now$/ }).click()
    await page.waitForURL(`${base}${purchase}`)
    await page.getByText('1 refunded already').waitFor()
    await page.goto(`${base}${asked}`)
    await page.getByText('1 of 2 refunded already').waitFor()
    await close()
  })

  it('works with the keyboard alone: skip link, menu, switch of the store', async () => {
    const { page, close } = await open('light', 'en', 1280)
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

  it.each(['de', 'en'])('shows the newest alarm with its buttons at once on a phone (%s)', async (lang) => {
    const { page, close } = await open('dark', lang, 390, { path: '/console/alarms' })
    const card = page.locator('article[data-alarm]').first()
    // Also below a warning of a silent gate.
    expect(await page.locator('.notice.warn').count()).toBe(1)
    const { y: end = 0 } = (await page.locator('.bottom').boundingBox()) ?? {}
    for (const button of await card.locator('.alarm-actions button').filter({ visible: true }).all()) {
      const { y = 0, height = 0 } = (await button.boundingBox()) ?? {}
      expect(y).toBeGreaterThan(0)
      expect(y + height).toBeLessThanOrEqual(end)
    }
    await close()
  })

  it('keeps the focus in a question, and gives it back to the button', async () => {
    const { page, close } = await open('light', 'en', 1280, { path: '/console/alarms' })
    const button = page.getByRole('button', { name: 'Record the cause' }).first()
    const inside = () =>
      page.evaluate<boolean>(
        `document.querySelector('.popover:popover-open')?.contains(document.activeElement) === true`,
      )
    const focused = () => page.evaluate<string>(`document.activeElement?.getAttribute('popovertarget') ?? ''`)
    const opened = page.locator('.popover:popover-open')
    // The list may be refreshed before the question opens and after it closed, so a cycle may begin again.
    const cycle = async (key: string) => {
      if ((await opened.count()) === 0) {
        await button.focus()
        await page.keyboard.press('Enter')
      }
      if (!(await inside())) return 'not open yet'
      for (let n = 0; n < 12; n++) {
        await page.keyboard.press(key)
        if (!(await inside())) return 'left the question'
      }
      await page.keyboard.press('Escape')
      return focused()
    }
    for (const key of ['Tab', 'Shift+Tab']) await expect.poll(() => cycle(key)).toMatch(/^cause-/)
    await close()
  })

  it('gives the focus back to the button of a question that was opened by mouse, while the list is refreshed', async () => {
    const { page, close } = await open('light', 'en', 1280, { path: '/console/alarms' })
    const opened = page.locator('.popover:popover-open')
    await page.evaluate(`(() => {
      globalThis.refreshed = 0
      globalThis.lost = 0
      addEventListener('htmx:afterSettle', () => globalThis.refreshed++, true)
      setInterval(() => document.activeElement === document.body && globalThis.lost++, 1)
      setInterval(() => document.querySelectorAll('[data-live]').forEach((part) => part.dispatchEvent(new Event('sse:changed'))), 100)
    })()`)
    for (let n = 0; n < 3; n++) {
      await page.getByRole('button', { name: 'Record the cause' }).first().click()
      await opened.locator('h2:focus').waitFor()
      for (let tab = 0; tab < 14; tab++) await page.keyboard.press('Tab')
      await page.evaluate('globalThis.refreshed = globalThis.lost = 0')
      await page.keyboard.press('Escape')
      await expect.poll(() => page.evaluate('globalThis.refreshed')).toBeGreaterThan(3)
      // Not for a moment: a key that is pressed then would go to the page.
      expect(await page.evaluate('globalThis.lost')).toBe(0)
      expect(await page.evaluate(`document.activeElement?.getAttribute('popovertarget')`)).toMatch(/^cause-/)
    }
    await close()
  })

  it('tells the second of two guards who decided, and stays connected when a part is replaced', async () => {
    const [one, two] = [await open('light', 'en', 390), await open('light', 'en', 390)]
    const { page } = one
    for (const each of [one.page, two.page]) {
      await each.goto(`${base}/console/alarms?store=${shop.storeId}`)
      await each.getByRole('button', { name: 'Record the cause' }).first().click()
    }
    const press = (of: typeof page, name: string) =>
      of.getByRole('button', { name }).filter({ visible: true }).first().click()
    // What was typed keeps the question of the first guard open.
    await page.getByLabel('Value of recovered goods').filter({ visible: true }).first().fill('1')
    await press(two.page, 'Forgot to pay')
    await two.page.getByText('The cause is recorded').first().waitFor()
    await press(page, 'Theft')
    await page.getByText('A colleague has recorded a cause in the meantime').first().waitFor()
    expect(await page.getByText('The cause is recorded').filter({ visible: true }).count()).toBe(0)
    const about = page.getByRole('region').filter({ has: page.locator('#rejected-cause') })
    for (const shown of [about.locator('h2'), about.getByText('So far: Forgot to pay'), about.getByRole('alert')])
      await expect
        .poll(async () => {
          const { y, height } = (await shown.boundingBox()) ?? { y: -1, height: 0 }
          return y >= 0 && y + height <= 844
        })
        .toBe(true)
    // A refresh that is under way when its part is replaced was answered, though htmx does not say so.
    await page.evaluate(
      `htmx.ajax('GET', location.href, { target: '#alarms', select: '#alarms', source: '#alarms' }), document.querySelector('#alarms').remove()`,
    )
    await new Promise((done) => setTimeout(done, 2_500))
    expect(await page.locator('#connection').isVisible()).toBe(false)
    await one.close()
    await two.close()
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
    await expect.poll(() => row.locator('.badge').innerText()).toBe('2')
    expect(problems).toEqual([])
    await close()
  })

  it.each([
    ['A4 landscape', 1122, 793],
    ['A4 portrait', 793, 1122],
    ['A4 portrait with margins', 718, 1047],
    ['A3 landscape', 1587, 1122],
  ])('prints day closings over the whole paper, with the name of the store: %s', async (_, width, height) => {
    const { page, close } = await open('light', 'de', width, { path: '/console/closings' })
    await page.setViewportSize({ width, height })
    await page.emulateMedia({ media: 'print' })
    const box = await page.locator('main').boundingBox()
    expect(box?.width).toBeGreaterThan(0.95 * width)
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
    const heads = page.locator('thead th').filter({ visible: true })
    expect((await heads.first().boundingBox())?.height).toBeGreaterThan(10)
    expect(await page.locator('.on-paper').innerText()).toMatch(/Hafenkante .* · .*\d{4}/)
    expect(await page.locator('.side, .top, .bottom').filter({ visible: true }).count()).toBe(0)
    await close()
  })

  describe('whose cloud does not answer', () => {
    const badGateway = {
      status: 502,
      contentType: 'text/html',
      body: '<html><body><h1>502 Bad Gateway</h1></body></html>',
    }
    const gone = { status: 200, contentType: 'text/html', body: '<html><body>Welcome to our guest Wi-Fi</body></html>' }

    it.each([
      ['502 of a proxy', badGateway],
      ['the page of a guest network', gone],
    ])('keeps open alarms and what was typed at %s, says so, and recovers', async (_, answer) => {
      const { page, close } = await open('light', 'en', 390, { path: '/console/operators' })
      await page.getByLabel('Name').first().fill('Jana Petersen')
      await page.route(/\/console/, (route) => route.fulfill(answer))
      await page
        .getByRole('button', { name: /add|register/i })
        .first()
        .click()
      const banner = page.getByRole('alert').filter({ hasText: 'No connection to the cloud' })
      await banner.waitFor()
      await expect.poll(() => banner.innerText()).toMatch(/known at \d.*not confirmed/s)
      expect(await page.getByLabel('Name').first().inputValue()).toBe('Jana Petersen')
      expect(await violations(page)).toEqual([])
      // A link does not lead away to the page of the proxy.
      const before = page.url()
      // The page asks for itself first: this must have met the proxy before the cloud is back, or the link leads on.
      const asked = page.waitForResponse((response) => response.url() === before)
      await page.locator('nav.bottom a').first().click()
      await asked
      await banner.waitFor()
      expect(page.url()).toBe(before)
      await page.unroute(/\/console/)
      await banner.waitFor({ state: 'hidden' })
      await page
        .getByRole('button', { name: /add|register/i })
        .first()
        .click()
      await page.getByText('Jana Petersen').first().waitFor()
      await close()
    })

    it.each([429, 503])(
      'keeps open alarms if the cloud itself refuses a refresh (%s), and refreshes later',
      async (status) => {
        await raise(`evt_${status}`)
        const { page, close } = await open('light', 'en', 1280)
        await page.goto(`${base}/console/alarms?store=${shop.storeId}`)
        const cards = () => page.locator('article[data-alarm]').count()
        const before = await cards()
        expect(before).toBeGreaterThan(0)
        const headers = { 'untag-page': '1' }
        await page.route(/\/console\/alarms/, (route) =>
          route.fulfill({
            status,
            headers,
            contentType: 'text/html',
            body: '<main id="page">Too many requests</main>',
          }),
        )
        await page.evaluate(`document.querySelector('#alarms').dispatchEvent(new Event('sse:changed'))`)
        const banner = page.getByRole('alert').filter({ hasText: 'No connection to the cloud' })
        await banner.waitFor()
        expect(await cards()).toBe(before)
        await page.unroute(/\/console\/alarms/)
        await banner.waitFor({ state: 'hidden' })
        expect(await cards()).toBe(before)
        await close()
      },
    )

    it('keeps open alarms and what was typed behind an nginx that lost the cloud', async () => {
      const { start } = PROXIES.find(({ name }) => name === 'nginx')!
      const app = consoleOf(shop, accountId, [...pages, galleryPage], 'owner').get('/healthz', (c) => c.text('ok'))
      const begin = async (port: number) => {
        const server = await listen({ host: '127.0.0.1', port, flag: 'port' })
        server.serve(app)
        return server
      }
      let cloud = await begin(0)
      const proxy = await start(`127.0.0.1:${cloud.port}`)
      const context = await chromium.browser.newContext()
      const [alarms, form] = [await context.newPage(), await context.newPage()]
      const at = (path: string) => `${proxy.origin}${path}?mode=test&store=${shop.storeId}&lang=en`
      await alarms.goto(at('/console/alarms'))
      await form.goto(at('/console/operators'))
      const cards = await alarms.locator('#alarms li, #alarms .card').count()
      expect(cards).toBeGreaterThan(0)
      await form.getByLabel('Name').first().fill('Ole Jensen')
      await cloud.close()
      await form
        .getByRole('button', { name: /add|register/i })
        .first()
        .click()
      for (const page of [alarms, form])
        await page.getByRole('alert').filter({ hasText: 'No connection to the cloud' }).waitFor()
      expect(await alarms.locator('#alarms li, #alarms .card').count()).toBe(cards)
      expect(await form.getByLabel('Name').first().inputValue()).toBe('Ole Jensen')
      cloud = await begin(cloud.port)
      for (const page of [alarms, form])
        await page.getByRole('alert').filter({ hasText: 'No connection to the cloud' }).waitFor({ state: 'hidden' })
      await form
        .getByRole('button', { name: /add|register/i })
        .first()
        .click()
      await form.getByText('Ole Jensen').first().waitFor()
      await context.close()
      await proxy.stop()
      await cloud.close()
    })

    it('says so at once without network, and refreshes its alarms afterwards', async () => {
      const { page, close } = await open('dark', 'de', 1280, { path: '/console/alarms' })
      const shown = await page.locator('#page').innerText()
      await page.context().setOffline(true)
      const banner = page.getByRole('alert').filter({ hasText: 'Keine Verbindung zur Cloud' })
      await banner.waitFor()
      expect(await page.locator('#page').innerText()).toBe(shown)
      expect(await violations(page)).toEqual([])
      await page.context().setOffline(false)
      await banner.waitFor({ state: 'hidden' })
      await close()
    })

    it('keeps the page and what was typed if a file cannot be downloaded, and then downloads it', async () => {
      const { page, close } = await open('light', 'en', 1280, { path: '/console/operations/exportSalesData' })
      for (const name of ['from', 'to']) await page.getByLabel(name, { exact: true }).fill('2026-11-01')
      const banner = page.getByRole('alert').filter({ hasText: 'No connection to the cloud' })
      const button = page.getByRole('button', { name: 'Download' })
      // A proxy answers in place of the cloud.
      await page.route(`${base}/**`, (route) => route.fulfill({ status: 502, body: 'Bad Gateway' }))
      await button.click()
      await banner.waitFor()
      expect(await page.getByLabel('from', { exact: true }).inputValue()).toBe('2026-11-01')
      await page.unroute(`${base}/**`)
      const [file] = await Promise.all([page.waitForEvent('download'), button.click()])
      expect(file.suggestedFilename()).toMatch(/^exportSalesData-[\d-]{10}\.json$/)
      expect(await page.getByLabel('from', { exact: true }).inputValue()).toBe('2026-11-01')
      await close()
    })

    it.each([
      ['/console/integrations', 'button', 'Weiter'],
      ['/console/closings', 'link', 'CSV'],
      ['/console/products/import', 'link', 'CSV'],
    ] as const)('keeps %s at a 502 of a proxy (%s)', async (path, role, name) => {
      const { page, close } = await open('light', 'de', 1280, { path })
      const [before, text] = [page.url(), await page.locator('#content h1').innerText()]
      await page.route(`${base}/**`, (route) => route.fulfill(badGateway))
      const control = page.getByRole(role, { name: new RegExp(name) }).first()
      await control.click()
      const banner = page.getByRole('alert').filter({ hasText: 'Keine Verbindung zur Cloud' })
      await banner.waitFor()
      expect(await banner.innerText()).not.toContain('nicht bestätigt')
      expect([page.url(), await page.locator('#content h1').innerText()]).toEqual([before, text])
      await page.unroute(`${base}/**`)
      if (role === 'link') await Promise.all([page.waitForEvent('download'), control.click()])
      else await Promise.all([page.waitForURL(/set-up/), control.click()])
      await close()
    })

    it('says of a pressed button that it is not confirmed, and of no entry that was not made', async () => {
      const { page, close } = await open('light', 'de', 1280, { path: '/console/exceptions' })
      await page.route(`${base}/**`, (route) => route.fulfill(badGateway))
      await page
        .locator('main form[method="post"]:not(:has(input:not([type="hidden"]), textarea, select)) button:visible')
        .first()
        .click()
      const banner = page.getByRole('alert').filter({ hasText: 'Keine Verbindung zur Cloud' })
      await expect.poll(() => banner.innerText()).toContain('Ihr Knopfdruck ist nicht bestätigt.')
      expect(await banner.innerText()).not.toContain('Eingabe')
      await close()
    })

    it('says after two seconds that nothing has answered', async () => {
      const { page, close } = await open('light', 'en', 1280, { path: '/console/operators' })
      let release = () => {}
      const held = new Promise<void>((resolve) => (release = resolve))
      await page.route(/\/console\/operators/, async (route) => {
        await held
        await route.continue()
      })
      await page.getByLabel('Name').first().fill('Herr Asmussen')
      await page
        .getByRole('button', { name: /add|register/i })
        .first()
        .click()
      const banner = page.getByRole('alert').filter({ hasText: 'No connection to the cloud' })
      await banner.waitFor()
      release()
      await page.getByText('Herr Asmussen').first().waitFor()
      await banner.waitFor({ state: 'hidden' })
      await close()
    })
  })

  it.each([
    ['with', true],
    ['without', false],
  ])('asks before it revokes an agent, %s scripts', async (_, hasScripts) => {
    const { page, close } = await open('dark', 'en', 390, { path: '/console/agents', javaScriptEnabled: hasScripts })
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
    const { page, close } = await open('light', 'de', 390, { path: '/console/components' })
    await page.getByLabel('Menge').fill('keine Zahl')
    await page.getByRole('button', { name: 'Speichern' }).click()
    await page.getByText('Prüfen Sie die markierten Felder.').waitFor()
    expect(await page.getByLabel('Menge').inputValue()).toBe('keine Zahl')
    await expect.poll(() => page.evaluate('document.activeElement.name')).toBe('limit')
    await close()
  })

  /** Raises alarms like the one of the filled console. */
  async function raise(...eventIds: string[]): Promise<void> {
    const { database } = shop.cloud.db
    const read = database.reads
    const event = await read
      .selectFrom('protection_event')
      .selectAll()
      .where('event_id', '=', 'evt_alarm')
      .executeTakeFirstOrThrow()
    const alarm = await read
      .selectFrom('protection_exception')
      .selectAll()
      .where('event_id', '=', 'evt_alarm')
      .executeTakeFirstOrThrow()
    await database.write(async (db) => {
      for (const eventId of eventIds) {
        const body = JSON.stringify({ ...JSON.parse(event.body), eventId })
        await db
          .insertInto('protection_event')
          .values({ ...event, event_id: eventId, body })
          .execute()
        const own = { exception_id: `exc_${eventId}`, event_id: eventId, subject: eventId, acknowledged_ms: null }
        await db
          .insertInto('protection_exception')
          .values({ ...alarm, ...own })
          .execute()
      }
    })
  }

  it('ends an open question about an alarm that a colleague disposed of, and keeps what was typed', async () => {
    await raise('evt_a', 'evt_b')
    const { page, problems, close } = await open('light', 'en', 1280)
    await page.goto(`${base}/console/alarms?store=${shop.storeId}`)
    const card = (id: string) => page.locator(`article[data-alarm="${id}"]`)
    const refresh = () => page.evaluate(`document.querySelector('#alarms').dispatchEvent(new Event('sse:changed'))`)
    const dispose = (eventId: string) => shop.ok('disposeAlarm', { eventId, disposition: 'real', operatorId: 'Gustav' })
    await card('evt_a').getByRole('button', { name: 'Record the cause' }).click()
    await dispose('evt_a')
    await refresh()
    await page.getByText('A colleague has recorded a cause in the meantime. Go back').waitFor()
    await page.keyboard.press('Escape')
    await expect.poll(() => card('evt_a').count()).toBe(0)
    await card('evt_b').getByRole('button', { name: 'Record the cause' }).click()
    const value = card('evt_b').getByLabel('Value of recovered goods')
    await value.fill('12')
    await dispose('evt_b')
    await refresh()
    await page.getByText('A colleague has recorded a cause in the meantime. Go back').waitFor()
    expect(await value.inputValue()).toBe('12')
    await page.keyboard.press('Escape')
    await expect.poll(() => card('evt_b').count()).toBe(0)
    expect(problems).toEqual([])
    await close()
  })

  it('ends the open question on the page of an alarm likewise, and shows the decision and its person', async () => {
    await raise('evt_e', 'evt_f')
    const { page, problems, close } = await open('light', 'en', 1280)
    const refresh = () => page.evaluate(`document.querySelector('#alarm').dispatchEvent(new Event('sse:changed'))`)
    const dispose = (disposition: string, eventId: string) =>
      shop.ok('disposeAlarm', { eventId, disposition, operatorId: 'Gustav' })
    const question = page.locator('[data-meanwhile]:popover-open')
    for (const [eventId, opener] of [
      ['evt_e', 'Record the cause'],
      ['evt_f', 'Record the cause'],
      ['evt_f', 'Change'],
    ] as const) {
      await page.goto(`${base}/console/alarms/${eventId}?store=${shop.storeId}`)
      await page.getByRole('button', { name: opener, exact: true }).click()
      const isTyped = eventId === 'evt_f'
      if (isTyped) await question.getByLabel('Value of recovered goods').fill('12')
      // A refresh without news leaves the question open.
      await Promise.all([page.waitForResponse(`**/console/alarms/${eventId}*`), refresh()])
      expect(await question.count()).toBe(1)
      await dispose(opener === 'Change' ? 'phantom' : 'real', eventId)
      await refresh()
      const cause = opener === 'Change' ? 'False alarm, no goods' : 'Theft'
      await question.getByText(`So far: ${cause} · Gustav`).first().waitFor()
      expect(await question.getByRole('status').textContent()).toMatch(/A colleague has recorded a cause/)
      if (isTyped) expect(await question.getByLabel('Value of recovered goods').inputValue()).toBe('12')
      await page.keyboard.press('Escape')
      await page.locator('.timeline').getByText('Gustav').first().waitFor()
      expect(await question.count()).toBe(0)
    }
    expect(problems).toEqual([])
    await close()
  })

  it.each([
    ['approvals', '/console/approvals', undefined, /let them pay/],
    ['exceptions', '/console/exceptions', undefined, /^Done/],
    ['operators', '/console/operators', /^Remove$/, 'Remove'],
    ['alarms', '/console/alarms', 'Record the cause', 'Forgot to pay'],
    ['alarm', '/console/alarms/evt_alarm', /^(?:Record the cause|Change)$/, 'Theft'],
    ['help', '/console/help', 'Done', 'Yes, done'],
  ] as const)('goes on with the keyboard after a form has done its task: %s', async (name, path, opener, confirm) => {
    if (name === 'alarms') await raise('evt_c', 'evt_d')
    const { page, close } = await open('light', 'en', 1280, { path })
    if (name === 'help') await page.locator('#requests a.button').first().click()
    const main = page.locator('#page')
    const focused = () =>
      page.evaluate<string>(`(() => {
        const { activeElement: at } = document
        return at.closest('#page') && at.checkVisibility() ? at.tagName : 'lost: ' + at.tagName
      })()`)
    if (opener !== undefined) {
      await main.getByRole('button', { name: opener }).first().focus()
      await page.keyboard.press('Enter')
      // The question takes the focus after it has opened.
      await page.locator('.popover:popover-open h2:focus').waitFor()
    }
    const inside = opener === undefined ? main : page.locator('.popover:popover-open')
    await inside
      .getByRole('button', { name: confirm, exact: typeof confirm === 'string' })
      .first()
      .press('Enter')
    await page.locator('#toasts').getByText(/\w/).first().waitFor()
    await expect.poll(focused).toMatch(/^(?:A|BUTTON|H1|H2|H3|SUMMARY)$/)
    // The message of the event stream refreshes the list again.
    await page.evaluate(
      `document.querySelectorAll('[data-live]').forEach((part) => part.dispatchEvent(new Event('sse:changed')))`,
    )
    await page.waitForLoadState('networkidle')
    expect(await focused()).toMatch(/^(?:A|BUTTON|H1|H2|H3|SUMMARY)$/)
    if (name === 'alarms')
      expect(await page.evaluate(`document.activeElement.closest('[data-alarm]') !== null`)).toBe(true)
    await close()
  })
})
