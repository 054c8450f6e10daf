// @module-tag extended
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { NO_CHROMIUM, startChromium, type TestBrowser } from '../support/chromium.ts'
import { wedge, type Wedge } from '../support/wedge.ts'
import { startDemonstration, type Demonstration } from '../support/demonstration.ts'

interface Product {
  ean: string
  price: number
}

/**
 * Runs the built programs: cloud, broker, agent and simulated devices in one process, and a browser with the station
 * page.
 */
describe.skipIf(NO_CHROMIUM)(`station and gate of the demonstration (${NO_CHROMIUM ?? 'in Chromium'})`, () => {
  let demo: Demonstration
  let chromium: TestBrowser
  let context: BrowserContext
  let station: Page
  let scanner: Wedge
  let products: Product[]

  beforeAll(async () => {
    demo = await startDemonstration()
    chromium = await startChromium()
    context = await chromium.browser.newContext({ viewport: { width: 1280, height: 800 }, locale: 'de-DE' })
    const first = await context.newPage()
    await first.goto(demo.pairingUrl)
    await first.getByRole('heading', { name: 'Welches Gerät?' }).waitFor()
    await first.close()
    await demo.api.call('registerOperator', { storeId: demo.storeId, name: 'Frau Petersen', pin: '471108' })
    const answer = await demo.api.call('fetchProducts', { storeId: demo.storeId, limit: 100, category: 'bekleidung' })
    // Uses only products over 40 EUR, because cheap ones have no label.
    products = (answer['products'] as Product[]).filter(({ price }) => price > 40).toSorted((a, b) => a.price - b.price)
    station = await open(demo.stationUrl)
    scanner = await wedge(station)
  })
  afterAll(async () => {
    await chromium?.close()
    expect(await demo?.quit()).toBe(0)
  })

  async function open(url: string): Promise<Page> {
    const page = await context.newPage()

    const live = page.waitForResponse((response) => response.url().endsWith('/v1/events'))
    await page.goto(url)
    await live
    return page
  }

  async function buy(product: Product | undefined, quantity = 1): Promise<string> {
    const { receipt } = await demo.api.buy({ storeId: demo.storeId, items: [{ ean: product?.ean ?? '', quantity }] })
    return receipt
  }

  const reads = (page: Page, place: string, text: string | RegExp) =>
    expect.poll(() => page.locator(place).innerText()).toMatch(text)

  it('release label by label, once each', async () => {
    const receipt = await buy(products[0], 2)
    await scanner.scan(receipt)
    await reads(station, '.stage', /Freigegeben\s+\S[^]*Noch 1 Etikett/)
    await station.getByRole('button', { name: 'Nächstes Etikett' }).click()
    await reads(station, '.stage', 'Alle 2 Etiketten erledigt.')
    await scanner.scan(receipt)
    await reads(station, '.stage', /Schon freigegeben\s+Alle Etiketten sind ab, zuletzt am \d+\. /)
    expect(await station.content()).not.toContain(receipt.split('/').at(-1))
  })

  it('let staff release an expensive item with a PIN', async () => {
    await scanner.scan(await buy(products.at(-1)))
    await reads(station, '.stage', /Bitte Personal fragen\s+Das Personal muss freigeben./)
    await station.getByRole('button', { name: 'Mit PIN freigeben' }).click()
    await station.getByRole('button', { name: 'Frau Petersen' }).click()
    for (const digit of '471108') await station.getByRole('button', { name: digit, exact: true }).click()
    await station.getByRole('button', { name: 'OK', exact: true }).click()
    await reads(station, '.stage', 'Freigegeben')
    await reads(station, '.operator', 'Angemeldet: Frau Petersen')
    await station.getByRole('button', { name: 'Abmelden' }).click()
  })

  it('work offline, show it, and send waiting events when the network is back', async () => {
    const receipt = await buy(products[1])
    demo.press('o')
    await reads(station, '.badges', 'Offline seit weniger als 1 min')
    await scanner.scan(receipt)
    await reads(station, '.stage', /Freigegeben[^]*Offline entschieden./)
    await reads(station, '.badges', /\d Ereignisse? warte/)
    await scanner.scan(receipt)
    await reads(station, '.stage', 'Schon freigegeben')
    demo.press('o')
    await reads(station, '.badges', 'Online')
    await expect.poll(() => station.locator('.badges').innerText()).not.toMatch('warte')
  })

  it('show reads of the device’s own scanner', async () => {
    await station.keyboard.press('Escape')
    demo.press('s')
    await reads(station, '.stage', 'Freigegeben')
    expect(demo.printed()).toContain('Staff station: label deactivated, confirmed')
  })

  it('show at the gate whether to go or stop', async () => {
    const gate = await open(demo.gateUrl)
    await reads(gate, '.stage', 'Bereit')
    const data = { deviceId: demo.gateId, text: await buy(products[2]) }
    await gate.request.post(`${new URL(demo.gateUrl).origin}/v1/scan`, { data })
    await reads(gate, '.stage', 'Danke, auf Wiedersehen')
    demo.press('u')
    await reads(gate, '.stage', /Alarm\s+Für diese Ware liegt noch keine Zahlung vor./)
    // The stage has the reason; the list names the goods.
    await reads(gate, 'aside', /Bearbeiten[^]*Ausgang frei/)
    const again = await open(`${demo.gateUrl}&lang=en`)
    await reads(again, 'aside', /Handle[^]*You may leave/)
    // Staff read the name of the goods, and say what the alarm was.
    const line = gate.locator('[data-alarm]').first()
    const eventId = await line.getAttribute('data-alarm')
    const goods = await line.locator('code').innerText()
    expect(goods).not.toMatch(/^[0-9A-F]{24}$/)
    expect(await gate.locator('.stage').innerText()).toContain(goods)
    await line.getByRole('button', { name: 'Bearbeiten' }).click()
    await gate.getByRole('button', { name: 'Frau Petersen' }).click()
    await gate.keyboard.type('471108')
    await gate.keyboard.press('Enter')
    await gate.getByRole('button', { name: 'Fehlalarm, keine Ware' }).click()
    await reads(gate, 'aside', 'Fehlalarm, keine Ware · Frau Petersen')
    await reads(again, 'aside', 'False alarm, no goods · Frau Petersen')
    const disposed = async () => {
      const answer = await demo.api.call('fetchProtectionEvents', { storeId: demo.storeId, limit: 500 })
      const events = answer['events'] as { eventId: string; alarm?: { disposition: string } }[]
      return events.find((event) => event.eventId === eventId)?.alarm?.disposition
    }
    await expect.poll(disposed).toBe('phantom')
  })
})
