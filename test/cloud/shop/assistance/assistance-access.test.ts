// @module-tag extended
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { violations } from '../../../support/axe.ts'
import { NO_CHROMIUM } from '../../../support/chromium.ts'
import { openPageBench, type PageBench } from '../../../support/page-bench.ts'

/**
 * Shoppers open a zone's page on any phone, perhaps without scripts. The tests cover the rules of WCAG 2.2 AA that a
 * program can test.
 */
describe.skipIf(NO_CHROMIUM)(`a zone’s page (${NO_CHROMIUM ?? 'in Chromium'})`, () => {
  let bench: PageBench
  let path: string

  beforeAll(async () => {
    bench = await openPageBench()
    const { shop } = bench
    path = new URL((await shop.ok('createZone', { storeId: shop.storeId, name: 'Herren' })).url).pathname
  })
  afterAll(() => bench?.stop())

  it.each([
    ['light', 'de', 'Hilfe rufen', 'Senden'],
    ['dark', 'en', 'Send, or call staff', 'Send'],
  ] as const)('%s, %s: sends a request and further messages without scripts', async (colorScheme, lang, call, send) => {
    const { chromium, shop } = bench
    const context = await chromium.browser.newContext({ colorScheme, viewport: { width: 320, height: 640 } })
    const page = await context.newPage()

    const found: string[] = []
    const look = async () => {
      found.push(...(await violations(page)))
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
    }
    await page.goto(bench.at(`${path}?lang=${lang}`))
    await look()
    await page.getByRole('textbox').fill('x'.repeat(600))
    await page.getByRole('button', { name: call, exact: true }).click()
    await page.getByText('x'.repeat(500), { exact: true }).waitFor()
    const { requests } = await shop.ok('fetchAssistanceRequests', { storeId: shop.storeId, limit: 1 })
    await shop.ok('answerAssistanceRequest', { requestId: requests[0].requestId, message: 'Bin gleich da.' })
    await page.getByRole('textbox').fill('Danke')
    await page.getByRole('button', { name: send, exact: true }).click()
    await page.getByText('Bin gleich da.').waitFor()
    await look()
    await shop.ok('answerAssistanceRequest', { requestId: requests[0].requestId, status: 'closed' })
    await page.reload()
    await look()
    expect(found).toEqual([])
    await context.close()
  })
  it('shows an answer by itself, keeps typed text and asks no more when the request is closed', async () => {
    const { chromium, shop } = bench
    const page = await chromium.browser.newPage()

    const problems: string[] = []
    page.on('console', (message) => void (message.type() === 'error' && problems.push(message.text())))
    await page.clock.install()
    await page.goto(bench.at(`${path}?lang=de`))
    await page.getByRole('button', { name: 'Hilfe rufen', exact: true }).click()
    await page.getByRole('textbox').fill('Ich warte an der')
    const { requests } = await shop.ok('fetchAssistanceRequests', { storeId: shop.storeId, limit: 1 })
    const unchanged = page.waitForResponse((response) => response.status() === 204)
    await page.clock.runFor(4_000)
    await unchanged
    await shop.ok('answerAssistanceRequest', { requestId: requests[0].requestId, message: 'Zwei Minuten noch.' })
    await page.clock.runFor(4_000)
    await page.getByText('Zwei Minuten noch.').waitFor()
    await page.getByText('Wir haben geantwortet.').waitFor()
    expect(await page.getByRole('textbox').inputValue()).toBe('Ich warte an der')
    await shop.ok('answerAssistanceRequest', { requestId: requests[0].requestId, status: 'closed' })
    await page.clock.runFor(4_000)
    await page.getByText('Diese Anfrage ist beendet.').waitFor()
    let later = 0
    page.on('request', () => (later += 1))
    await page.clock.runFor(20_000)
    expect([later, problems]).toEqual([0, []])
    await page.close()
  })

  it.each([
    ['502 of a proxy', { status: 502, contentType: 'text/html', body: '<h1>502 Bad Gateway</h1>' }],
    ['the page of a guest network', { status: 200, contentType: 'text/html', body: '<h1>Welcome</h1>' }],
    ['no network', undefined],
  ])('keeps the conversation and a message at %s, says so, and sends it afterwards', async (_, answer) => {
    const page = await bench.chromium.browser.newPage()
    const lose = () =>
      answer ? page.route(/\/z\//, (route) => route.fulfill(answer)) : page.context().setOffline(true)
    const find = () => (answer ? page.unroute(/\/z\//) : page.context().setOffline(false))
    await page.goto(bench.at(`${path}?lang=de`))
    await page.getByRole('textbox').fill('Wo sind die Schals?')
    // The first question, too, stays where it was typed.
    await lose()
    await page.getByRole('button', { name: 'Hilfe rufen', exact: true }).click()
    await expect.poll(() => page.getByRole('alert').innerText()).toMatch(/Keine Verbindung.*nicht bestätigt/s)
    expect(await page.getByRole('textbox').inputValue()).toBe('Wo sind die Schals?')
    await find()
    await page.getByRole('button', { name: 'Hilfe rufen', exact: true }).click()
    await page.getByText('Wo sind die Schals?').waitFor()
    await lose()
    await page.getByRole('textbox').fill('In Blau?')
    await page.getByRole('button', { name: 'Senden', exact: true }).click()
    const lost = page.getByRole('alert')
    await expect.poll(() => lost.innerText()).toMatch(/Keine Verbindung.*Stand von \d\d:\d\d.*nicht bestätigt/s)
    expect(await violations(page)).toEqual([])
    expect(await page.getByText('Wo sind die Schals?').count()).toBe(1)
    await find()
    await lost.waitFor({ state: 'hidden' })
    expect(await page.getByRole('textbox').inputValue()).toBe('In Blau?')
    await page.getByRole('button', { name: 'Senden', exact: true }).click()
    await page.getByRole('list').getByText('In Blau?').waitFor()
    expect(await page.getByRole('textbox').inputValue()).toBe('')
    await page.close()
  })
})
