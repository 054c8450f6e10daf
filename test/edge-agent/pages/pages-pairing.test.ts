// @module-tag extended
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { violations } from '../../support/axe.ts'
import { ensureBuilt } from '../../support/built.ts'
import { NO_CHROMIUM, startChromium, type TestBrowser } from '../../support/chromium.ts'
import { pagesBench, servePages, STATION, type PagesBench, type ServedPages } from './pages-agent.ts'

describe.skipIf(NO_CHROMIUM)(`pairing a browser (${NO_CHROMIUM ?? 'in Chromium'})`, () => {
  let chromium: TestBrowser
  let bench: PagesBench
  let served: ServedPages
  let context: BrowserContext
  let page: Page

  beforeAll(async () => {
    ensureBuilt()
    chromium = await startChromium()
    context = await chromium.browser.newContext()
  })
  afterAll(() => chromium?.close())
  beforeEach(async () => {
    bench = pagesBench()
    served = await servePages(bench)
    await context.clearCookies()
    page = await context.newPage()
  })
  afterEach(async () => {
    for (const each of context.pages()) await each.close()
    await served.close()
  })

  const heading = (text: string) => page.getByRole('heading', { name: text }).waitFor()
  const station = () => `${served.url}/station?device=${STATION}&lang=en`

  it('with its link opens the pages; no address contains the secret, and no script can read it', async () => {
    const link = served.pairingUrl()
    const requestedUrls: string[] = []
    page.on('request', (request) => requestedUrls.push(request.url()))
    await page.goto(link)
    await heading('Welches Gerät?')
    expect(
      requestedUrls.filter((url) => new URL(url).pathname + new URL(url).search !== new URL(url).pathname),
    ).toEqual([])
    expect(page.url()).toBe(`${served.url}/station`)
    expect(await page.evaluate('document.cookie + localStorage.length + sessionStorage.length')).toBe('00')
    const [cookie] = await context.cookies()
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', path: '/' })
    await page.goto(station())
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
    await page.goBack()
    expect(page.url()).not.toContain('#')
  })

  it('redeems a link once: another browser must get a new one, and a preview without scripts redeems nothing', async () => {
    const link = served.pairingUrl()
    expect((await fetch(link)).status).toBe(200)
    await page.goto(link)
    await heading('Welches Gerät?')
    const other = await (await chromium.browser.newContext()).newPage()
    await other.goto(link)
    await other.getByText('Dieser Link wurde schon benutzt oder ist älter als 15 Minuten.').waitFor()
    await other.context().close()
  })

  it.each([
    ['dark', 'de', 1280],
    ['light', 'en', 390],
  ] as const)('is explained in the %s scheme, in %s, %s px wide', async (colorScheme, lang, width) => {
    await page.emulateMedia({ colorScheme })
    await page.setViewportSize({ width, height: 844 })
    const answer = await page.goto(`${served.url}/station?device=${STATION}&lang=${lang}`)
    expect(answer?.status()).toBe(401)
    await heading(lang === 'de' ? 'Dieser Browser ist noch nicht gekoppelt.' : 'This browser is not paired yet.')
    expect(await page.locator('pre').innerText()).toBe("untag edge link --data '/srv/my data'")
    expect(await violations(page)).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
    // The link to the other language names the same device.
    await page.getByRole('link', { name: lang === 'de' ? 'English' : 'Deutsch' }).click()
    await heading(lang === 'de' ? 'This browser is not paired yet.' : 'Dieser Browser ist noch nicht gekoppelt.')
    expect(new URL(page.url()).searchParams.get('device')).toBe(STATION)
  })

  it('accepts a pasted link, and stays unpaired after a wrong one', async () => {
    await page.goto(station())
    const field = page.getByLabel('Or paste the link here:')
    await field.fill('http://elsewhere/pair#untag_link_yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy')
    await page.getByRole('button', { name: 'Pair' }).click()
    await page.getByText('This link was already used, or is older than 15 minutes.').waitFor()
    expect(await field.inputValue()).toBe('')
    await field.fill(served.pairingUrl())
    await page.getByRole('button', { name: 'Pair' }).click()
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
  })

  it('in one tab opens the page that waits in another', async () => {
    await page.goto(station())
    await heading('This browser is not paired yet.')
    const second = await context.newPage()
    // Of a tab that shows no lane, the next ones use the language.
    await second.goto(`${served.url}/station?lang=en`)
    await second.goto(served.pairingUrl())
    await second.getByRole('heading', { name: 'Which device?' }).waitFor()
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
  })

  it('also applies to a page that is opened from another site', async () => {
    await page.goto(served.pairingUrl())
    await heading('Welches Gerät?')
    // Browsers send no strict cookie with a link of another site. localhost is another site than 127.0.0.1.
    await page.route('http://localhost:9/', (route) =>
      route.fulfill({ contentType: 'text/html', body: `<a href="${station()}">station</a>` }),
    )
    await page.goto('http://localhost:9/')
    await page.getByRole('link').click()
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
  })
})
