// @module-tag extended
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { ScanResult } from '../../../edge-agent/lanes/scan-result.ts'
import { violations } from '../../support/axe.ts'
import { ensureBuilt } from '../../support/built.ts'
import { NO_CHROMIUM, startChromium, type TestBrowser } from '../../support/chromium.ts'
import { wedge, type Wedge } from '../../support/wedge.ts'
import {
  denied,
  granted,
  OPERATOR,
  pagesBench,
  pairBrowser,
  servePages,
  STATION,
  type PagesBench,
  type ServedPages,
} from './pages-agent.ts'

const RECEIPT = 'HTTPS://SHOP.EXAMPLE/R/2IABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** The station page in a real browser, with an agent that the test controls. */
describe.skipIf(NO_CHROMIUM)(`the station page (${NO_CHROMIUM ?? 'in Chromium'})`, () => {
  let chromium: TestBrowser
  let bench: PagesBench
  let served: ServedPages
  let page: Page
  let scanner: Wedge
  let pageErrors: string[]

  beforeAll(async () => {
    ensureBuilt()
    chromium = await startChromium()
    page = await chromium.browser.newPage({ viewport: { width: 1280, height: 800 } })

    page.on('pageerror', (error) => pageErrors.push(error.message))
    page.on('console', (message) => message.type() === 'error' && pageErrors.push(message.text()))
    scanner = await wedge(page)
  })
  afterAll(() => chromium?.close())

  beforeEach(async () => {
    bench = pagesBench()
    served = await servePages(bench)
    pageErrors = []
    await pairBrowser(page, served)
    const live = page.waitForResponse((response) => response.url().endsWith('/v1/events'))
    await page.goto(`${served.url}/station?device=${STATION}`)
    await live
    await waitUntilLive()
  })
  afterEach(() => served.close())

  /** Waits until the page's script receives events: only the script can show the new status. */
  async function waitUntilLive(): Promise<void> {
    bench.status = { ...bench.status, queueDepth: bench.status.queueDepth + 1 }
    const { queueDepth } = bench.status
    await expect
      .poll(async () => {
        bench.feed.publish({ type: 'status', status: bench.status })
        return page.locator('.badges').textContent()
      })
      .toContain(queueDepth === 1 ? '1 Ereignis' : `${queueDepth} Ereignisse`)
  }

  const stage = () => page.locator('.stage')
  const toneIs = (tone: string) => page.locator(`.stage[data-view='result'][data-tone='${tone}']`).waitFor()
  const expectText = (text: string) => expect.poll(() => stage().innerText()).toContain(text)
  const idle = () => page.locator(`.stage[data-view='idle']`).waitFor()
  const button = (name: string) => page.getByRole('button', { name, exact: true })

  it('sends a scan that ends with Enter or Tab, and shows its result', async () => {
    await scanner.scan(RECEIPT)
    await toneIs('granted')
    expect(await stage().innerText()).toContain('Freigegeben')
    bench.answer = () => denied('token_expired')
    await scanner.scan('HTTPS://SHOP.EXAMPLE/R/OTHER', ['Tab'])
    await toneIs('refused')
    expect(await stage().innerText()).toContain('Dieser Beleg ist abgelaufen.')
    expect(bench.scans.map(({ text }) => text)).toEqual([RECEIPT, 'HTTPS://SHOP.EXAMPLE/R/OTHER'])
    expect(pageErrors).toEqual([])
  })

  it('sends a scan of a scanner that ends it with no key, also after a scan with Enter', async () => {
    await scanner.scan(RECEIPT)
    await toneIs('granted')
    bench.answer = () => denied('token_expired')
    await scanner.scan('4006381333931', [])
    await toneIs('refused')
    expect(bench.scans.map(({ text }) => text)).toEqual([RECEIPT, '4006381333931'])
  })

  it('counts down label by label with the same scan', async () => {
    let remaining = 3
    bench.answer = () => granted({ itemCount: 3, remaining: --remaining })
    await scanner.scan(RECEIPT)
    await expectText('Noch 2 Etiketten')
    await button('Nächstes Etikett').click()
    await expectText('Noch 1 Etikett')
    // Keyboard users continue with the same key.
    await scanner.scan('', ['Enter'])
    await expectText('Alle 3 Etiketten erledigt.')
    expect(await button('Nächstes Etikett').isVisible()).toBe(false)
    expect(bench.scans.map(({ text }) => text)).toEqual([RECEIPT, RECEIPT, RECEIPT])
  })

  it('does not press the focused button on a scanner’s line feed', async () => {
    await button('Anmelden').focus()
    await scanner.scan(RECEIPT, ['Enter', 'Enter'])
    await toneIs('granted')
    expect(await page.locator('dialog').isVisible()).toBe(false)
    await page.getByLabel('Code oder Einkaufsnummer').focus()
    bench.answer = () => denied('token_expired')
    await scanner.scan('HTTPS://SHOP.EXAMPLE/R/SECOND', ['Enter', 'Tab'])
    await toneIs('refused')
    expect(bench.scans.map(({ text }) => text)).toEqual([RECEIPT, 'HTTPS://SHOP.EXAMPLE/R/SECOND'])
  })

  it('sends a typed code, and keeps scans out of the field', async () => {
    const field = page.getByLabel('Code oder Einkaufsnummer')
    expect(await field.getAttribute('maxlength')).toBe('4096')
    await field.fill('4017265103243')
    bench.answer = () => ({ kind: 'not_understood', why: 'product_code' })
    await button('Prüfen').click()
    await expectText('Das ist der Strichcode der Ware.')
    expect(await field.inputValue()).toBe('')
    await field.fill('left over')
    await field.focus()
    await scanner.scan(RECEIPT)
    await expect.poll(() => bench.scans.map(({ text }) => text)).toEqual(['4017265103243', RECEIPT])
    expect(await field.inputValue()).toBe('')
  })

  it('shows an unknown outcome without a button to send the scan again', async () => {
    bench.answer = () => granted({ outcome: 'unknown', itemCount: 2, remaining: 1 })
    await scanner.scan(RECEIPT)
    await toneIs('unsure')
    expect(await stage().innerText()).toContain('Ist das Etikett ab?')
    expect(await page.locator('[data-slot=again]').isVisible()).toBe(false)
    bench.answer = () => granted({ outcome: 'failed' })
    await scanner.scan('HTTPS://SHOP.EXAMPLE/R/SECOND')
    await button('Noch einmal versuchen').waitFor()
  })

  it('shows results of the device’s own scanner, without a button to send the scan again', async () => {
    bench.happens(STATION, granted({ itemCount: 3, remaining: 2 }))
    await expectText('Noch 2 Etiketten')
    expect(await page.locator('[data-slot=again]').isVisible()).toBe(false)
    bench.happens('dev_elsewhere', denied('item_not_paid'))
    bench.happens(STATION, denied('manual_assistance_required'))
    await toneIs('staff')
    expect(await stage().innerText()).toContain('Anmelden und noch einmal scannen.')
  })

  it('lets staff release with a PIN after a wrong PIN, and signs them out', async () => {
    bench.answer = (_, operatorId) => (operatorId === undefined ? denied('manual_assistance_required') : granted())
    await scanner.scan(RECEIPT)
    await button('Mit PIN freigeben').click()
    await button('Frau Petersen').click()
    for (const digit of '0000') await button(digit).click()
    await button('OK').click()
    await page.getByText('Die PIN ist falsch.').waitFor()
    // The keys of a keyboard work as well as the pad.
    await page.keyboard.type(OPERATOR.pin, { delay: 60 })
    await button('OK').click()
    await toneIs('granted')
    expect(await page.locator('.operator').innerText()).toContain('Angemeldet: Frau Petersen')
    expect(bench.scans.map(({ text, operatorId, byHand }) => [text, operatorId, byHand])).toEqual([
      [RECEIPT, undefined, false],
      [RECEIPT, OPERATOR.operatorId, true],
    ])
    expect(await page.evaluate('document.cookie + localStorage.length')).toBe('0')
    // Of a result that is left, the tab keeps no receipt.
    await button('Fertig').click()
    expect(await page.evaluate('JSON.stringify(sessionStorage)')).not.toContain(RECEIPT)
    await button('Abmelden').click()
    await button('Anmelden').waitFor()
    await scanner.scan('HTTPS://SHOP.EXAMPLE/R/LATER')
    await toneIs('staff')
    expect(bench.scans.at(-1)?.operatorId).toBeUndefined()
  })

  it('shows how long a name is locked', async () => {
    await button('Anmelden').click()
    expect(await page.getByRole('button', { name: 'Herr Tran nur mit Ausweis' }).isDisabled()).toBe(true)
    await button('Frau Petersen').click()
    for (let i = 0; i < 6; i++) {
      const answered = page.waitForResponse((response) => response.url().endsWith('/v1/operator'))
      await page.getByLabel('PIN', { exact: true }).fill('0000')
      await button('OK').click()
      await answered
    }
    await page.getByText(/Gesperrt nach zu vielen falschen Versuchen. In \d+ s noch einmal versuchen./).waitFor()
    await page.keyboard.press('Escape')
    await page.locator('dialog').waitFor({ state: 'hidden' })
  })

  it('shows what to do while the agent lacks the store key, and counts no error', async () => {
    bench.hasStoreKey = false
    await button('Anmelden').click()
    await button('Frau Petersen').click()
    for (let i = 0; i < 6; i++) {
      const answered = page.waitForResponse((response) => response.url().endsWith('/v1/operator'))
      await page.getByLabel('PIN', { exact: true }).fill('000000')
      await button('OK').click()
      expect((await answered).status()).toBe(503)
    }
    await page.getByText('Der Agent kann PINs und Ausweise noch nicht prüfen. Er holt einen Schlüssel').waitFor()
    bench.hasStoreKey = true
    await page.getByLabel('PIN', { exact: true }).fill(OPERATOR.pin)
    await button('OK').click()
    await page.getByText('Angemeldet: Frau Petersen').waitFor()
    await button('Abmelden').click()
    await button('Anmelden').waitFor()
  })

  it('shows the name of an operator who signed in with a badge, as plain text', async () => {
    bench.feed.publish({ type: 'operator', deviceId: STATION, name: '<b id=evil>Mallory</b>' })
    await page.getByText('Angemeldet: <b id=evil>Mallory</b> (alle Bildschirme)').waitFor()
    expect(await page.locator('#evil').count()).toBe(0)
    bench.feed.publish({ type: 'operator', deviceId: STATION, name: null })
    await button('Anmelden').waitFor()
  })

  it('shows in each paired browser who is signed in at the lane, and that this holds for all of its screens', async () => {
    bench.agent.lanes.signIn(STATION, { operatorId: OPERATOR.operatorId, pin: OPERATOR.pin }, 'a browser')
    const context = await chromium.browser.newContext({ locale: 'de-DE', viewport: { width: 1024, height: 600 } })
    const fresh = await context.newPage()
    await pairBrowser(fresh, served)
    await fresh.goto(`${served.url}/station?device=${STATION}`)
    await fresh.getByText('Angemeldet: Frau Petersen (alle Bildschirme)').waitFor()
    await fresh.getByRole('button', { name: 'Abmelden' }).click()
    await page.getByRole('button', { name: 'Anmelden' }).waitFor()
    await fresh.getByRole('button', { name: 'Anmelden' }).click()
    await fresh.getByText('Die Anmeldung gilt auf allen Bildschirmen dieses Geräts').waitFor()
    await context.close()
  })

  it('accepts a scanned badge, even over the PIN pad', async () => {
    const badge = `UNTAGOP01KANX6Y7C3V9Q2M8R5T4W6Z1B${'A'.repeat(26)}`
    bench.answer = () => ({ kind: 'operator', name: 'Frau Petersen' })
    await button('Anmelden').click()
    await button('Frau Petersen').click()
    await scanner.scan(badge)
    await page.locator('dialog').waitFor({ state: 'hidden' })
    await expect.poll(() => page.locator('.operator').innerText()).toContain('Angemeldet: Frau Petersen')
    expect(bench.scans.map(({ text }) => text)).toEqual([badge])
  })

  it('sends a repeated scan once, and accepts the next code', async () => {
    let answer: (result: ScanResult) => void = () => undefined
    bench.answer = () => new Promise((resolve) => (answer = resolve))
    await scanner.scan(RECEIPT)
    await expectText('Wird geprüft')
    await scanner.scan(RECEIPT)
    await expect.poll(() => bench.scans.length).toBe(1)
    answer(denied('item_not_paid'))
    await toneIs('refused')
    await scanner.scan('HTTPS://SHOP.EXAMPLE/R/NEXT')
    await expect.poll(() => bench.scans.length).toBe(2)
    answer(granted())
    await toneIs('granted')
  })

  it('reloads when its browser is no longer paired, and returns after pairing', async () => {
    const { pairings } = bench.agent.ledger
    for (const { id } of pairings.list()) pairings.revoke(id)
    await expect
      .poll(() => {
        bench.feed.publish({ type: 'status', status: bench.status })
        return page.locator('h1').innerText()
      })
      .toBe('Dieser Browser ist noch nicht gekoppelt.')
    expect(await violations(page)).toEqual([])
    await pairBrowser(page, served)
    await button('Anmelden').waitFor()
    await waitUntilLive()
    for (const { id } of pairings.list()) pairings.revoke(id)
    await button('Anmelden').click()
    await page.getByText('Dieser Browser ist noch nicht gekoppelt.').waitFor()
  })

  it('reloads when the agent has another build', async () => {
    await served.close()
    await page.locator('.banner').waitFor()
    await page.route('**/assets/**/live.js', (route) => route.fulfill({ status: 404 }), { times: 1 })
    const loaded = page.waitForEvent('load')
    served = await servePages(bench, Number(new URL(served.url).port))
    await loaded
    await waitUntilLive()
  })

  it('shows a lost connection to the agent, and reconnects', async () => {
    const port = Number(new URL(served.url).port)
    await served.close()
    await page.locator('.banner').getByText('Diese Seite verbindet sich von selbst wieder').waitFor()
    // Nothing invites to scan while nothing can answer.
    await expectText('Belege lassen sich gerade nicht prüfen.')
    expect(await page.locator('.banner').innerText()).toMatch(/Keine Antwort seit \d\d:\d\d Uhr\./)
    await scanner.scan(RECEIPT)
    await expectText('Bitte einen Moment warten')
    expect(await stage().innerText()).not.toMatch(/Technik|von Hand/)
    served = await servePages(bench, port)
    await expect.poll(() => page.locator('.badges').innerText()).toContain('Online')
    expect(await page.locator('.banner').count()).toBe(0)
    await page.keyboard.press('Escape')
    await idle()
  })

  it('keeps the result and the labels that are left over a reload and the link of the language', async () => {
    let remaining = 3
    bench.answer = () => {
      const result = granted({ itemCount: 3, remaining: --remaining })
      bench.happens(STATION, result)
      return result
    }
    await scanner.scan(RECEIPT)
    await expectText('Noch 2 Etiketten')
    await page.reload()
    await expectText('Noch 2 Etiketten')
    await page.getByRole('link', { name: 'English' }).click()
    await expectText('2 labels left')
    await button('Next label').click()
    await expectText('1 label left')
    expect(bench.scans.map(({ text }) => text)).toEqual([RECEIPT, RECEIPT])
    // A result that was left does not come back.
    await button('Done').click()
    await page.reload()
    await page.locator('.idle').waitFor()
    expect(await page.locator('.result').isVisible()).toBe(false)
    expect(await page.content()).not.toContain('2IABCDEFG')
  })

  it('returns to its own language once it was at rest for a while', async () => {
    const other = await chromium.browser.newPage({ locale: 'de-DE' })
    await pairBrowser(other, served)
    await other.clock.install()
    await other.goto(`${served.url}/station?device=${STATION}&lang=en`)
    await other.getByText('Scan the receipt').waitFor()
    await other.clock.fastForward(50_000)
    await other.keyboard.press('Shift')
    await other.clock.fastForward(50_000)
    expect(other.url()).toContain('lang=en')
    await other.clock.fastForward(11_000)
    await other.getByText('Beleg scannen').waitFor()
    await other.close()
  })

  it('returns to idle after a time or on Escape, and drops the receipt', async () => {
    // The last test, because the clock of the page stays a test clock.
    await page.clock.install()
    await page.reload()
    await waitUntilLive()
    bench.answer = () => granted({ itemCount: 1 })
    await scanner.scan(RECEIPT)
    await toneIs('granted')
    await page.clock.fastForward(5_500)
    await toneIs('granted')
    await page.clock.fastForward(1_000)
    await idle()
    bench.answer = () => granted({ itemCount: 3, remaining: 2 })
    await scanner.scan(RECEIPT)
    await expectText('Noch 2 Etiketten')
    bench.answer = () => denied('item_not_paid')
    await scanner.scan('HTTPS://SHOP.EXAMPLE/R/OTHER')
    await toneIs('refused')
    await page.clock.fastForward(6_500)
    await toneIs('refused')
    await page.keyboard.press('Escape')
    await idle()
    expect(await page.locator('.last').innerText()).toMatch(/Zuletzt um \d\d:\d\d:\d\d: Noch nicht freigegeben/)
    expect(await page.content()).not.toContain('2IABCDEFG')
    const scanned = bench.scans.length
    await page.locator('[data-slot=again]').dispatchEvent('click')
    await scanner.scan('HTTPS://SHOP.EXAMPLE/R/NEXT')
    await toneIs('refused')
    expect(bench.scans).toHaveLength(scanned + 1)
  })
})
