// @module-tag extended
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { violations } from '../../support/axe.ts'
import { ensureBuilt } from '../../support/built.ts'
import { NO_CHROMIUM, startChromium, type TestBrowser } from '../../support/chromium.ts'
import { IS_FULL_SIZE } from '../../support/full-size.ts'
import { wedge } from '../../support/wedge.ts'
import {
  atTheGate,
  denied,
  GATE,
  granted,
  pagesBench,
  pairBrowser,
  servePages,
  STATION,
  type PagesBench,
  type ServedPages,
} from './pages-agent.ts'

const SCHEMES = ['dark', 'light'] as const
/** In CI each state of a page has one of the schemes, in turn. In full size it has both. */
const schemesOf = (nth: number) => SCHEMES.filter((_, i) => IS_FULL_SIZE || i === nth % SCHEMES.length)
const UNPAID = atTheGate(
  'E2801160600002084F1C2A3B',
  denied('item_not_paid', { action: 'authorize_exit', itemStatus: 'sellable' }),
)
const SIZES = [
  { width: 1280, height: 800 },
  { width: 390, height: 844 },
]

/** The pages meet WCAG 2.2 AA as far as axe can check, and have touch targets for fingers. */
describe.skipIf(NO_CHROMIUM)(`access to the pages (${NO_CHROMIUM ?? 'in Chromium'})`, () => {
  let chromium: TestBrowser
  let bench: PagesBench
  let served: ServedPages
  let page: Page

  beforeAll(async () => {
    ensureBuilt()
    chromium = await startChromium()
    bench = pagesBench()
    served = await servePages(bench)
    page = await chromium.browser.newPage()

    await pairBrowser(page, served)
  })
  afterAll(async () => {
    await chromium?.close()
    await served?.close()
  })

  async function open(path: string, colorScheme: 'dark' | 'light', viewport = SIZES[0]): Promise<void> {
    await page.emulateMedia({ colorScheme, reducedMotion: 'no-preference' })
    if (viewport) await page.setViewportSize(viewport)
    await page.context().clearCookies({ name: 'untag_language' })
    const live = page.waitForResponse((response) => response.url().endsWith('/v1/events'))
    await page.goto(`${served.url}${path}`)
    await live
  }

  async function scan(tone: string): Promise<void> {
    const scanner = await wedge(page)
    await scanner.scan('HTTPS://SHOP.EXAMPLE/R/ABCDEF')
    await page.locator(`.stage[data-view='result'][data-tone='${tone}']`).waitFor()
  }

  /** Publishes a result until the page shows it. */
  async function happens(tone: string, result: Parameters<PagesBench['happens']>[1]): Promise<void> {
    await expect
      .poll(() => {
        bench.happens(GATE, result)
        return page.locator('.stage').getAttribute('data-tone')
      })
      .toBe(tone)
  }

  it.each(schemesOf(0))('the station page meets all axe rules in the %s scheme', async (scheme) => {
    await open(`/station?device=${STATION}`, scheme)
    expect(await violations(page)).toEqual([])
    bench.answer = () => granted({ itemCount: 3, remaining: 2 })
    await scan('granted')
    expect(await violations(page)).toEqual([])
    bench.answer = () => denied('item_not_paid')
    await scan('refused')
    expect(await violations(page)).toEqual([])
    bench.answer = () => denied('manual_assistance_required')
    await scan('staff')
    expect(await violations(page)).toEqual([])
    bench.answer = () => granted({ outcome: 'unknown' })
    await scan('unsure')
    expect(await violations(page)).toEqual([])
    bench.answer = () => ({ kind: 'not_understood', why: 'unknown_code' })
    await scan('note')
    expect(await violations(page)).toEqual([])
  })

  it.each(schemesOf(1))('the sign-in dialog meets all axe rules in the %s scheme', async (scheme) => {
    await open(`/station?device=${STATION}&lang=en`, scheme)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('button', { name: 'Frau Petersen' }).waitFor()
    expect(await violations(page)).toEqual([])
    await page.getByRole('button', { name: 'Frau Petersen' }).click()
    await page.getByRole('button', { name: 'OK', exact: true }).click()
    await page.getByText('This PIN is too short. PINs have 6 to 12 digits, older ones at least 4.').waitFor()
    expect(await violations(page)).toEqual([])
  })

  it.each(schemesOf(2))(
    'a station that is offline with a device fault meets all axe rules in the %s scheme',
    async (scheme) => {
      await open(`/station?device=${STATION}`, scheme)
      const healthy = bench.status
      const devices = healthy.devices.map((d) => ({ ...d, state: 'degraded' as const, detail: 'no answer' }))
      const offlineSince = new Date(0).toISOString()
      const offline = { online: false, offlineSince, queueDepth: 2, stage: 'stale' as const, clock: 'none' as const }
      bench.status = { ...healthy, ...offline, devices, fault: 'disk I/O error' }
      await expect
        .poll(() => {
          // Staff read all that is wrong.
          bench.feed.publish({ type: 'operator', deviceId: STATION, name: 'Frau Petersen' })
          bench.feed.publish({ type: 'status', status: bench.status })
          return page.locator('.banner').count()
        })
        .toBe(3)
      expect(await violations(page)).toEqual([])
      bench.feed.publish({ type: 'operator', deviceId: STATION, name: null })
      bench.status = healthy
    },
  )

  it.each(schemesOf(3))('the gate page and the device list meet all axe rules in the %s scheme', async (scheme) => {
    await open(`/gate?device=${GATE}`, scheme)
    expect(await violations(page)).toEqual([])
    await happens('green', granted({ action: 'authorize_exit' }))
    expect(await violations(page)).toEqual([])
    await happens('amber', denied('token_expired', { action: 'authorize_exit' }))
    expect(await violations(page)).toEqual([])
    await happens('alarm', UNPAID)
    expect(await page.locator('.stage').innerText()).toContain('Für diese Ware liegt noch keine Zahlung vor.')
    expect(await page.locator('.stage').innerText()).toContain('E2801160600002084F1C2A3B')
    expect(await page.locator('aside li').count()).toBeLessThanOrEqual(5)
    expect(await violations(page)).toEqual([])
    const controls = await page.locator(':is(button, a, input):visible').allTextContents()
    expect(controls).toEqual(['Anmelden', 'English', 'Ton: an', 'Vollbild'])
    await page.goto(`${served.url}/station`)
    expect(await violations(page)).toEqual([])
  })

  it.each(SIZES)('touch targets are large enough at $width × $height, and nothing overflows', async (viewport) => {
    await open(`/station?device=${STATION}`, 'dark', viewport)
    const small = async (least: number, selector: string) => {
      const places = await page.locator(selector).filter({ visible: true }).all()
      const boxes = await Promise.all(places.map((place) => place.boundingBox()))
      return boxes.filter(
        (box) => !box || box.height < least || box.width < least || box.x < 0 || box.x + box.width > viewport.width,
      )
    }
    expect(await small(48, 'button, a, input')).toEqual([])
    // Merchants choose device names. A long word in a name must not overflow on a handheld.
    await page.evaluate("document.querySelector('h1').textContent = 'Herrenoberbekleidungsabteilung'.repeat(4)")
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(viewport.width)
    bench.answer = () => granted({ itemCount: 3, remaining: 2 })
    await scan('granted')
    expect(await small(72, '.result button')).toEqual([])
    await page.getByRole('button', { name: 'Anmelden' }).click()
    await page.getByRole('button', { name: 'Frau Petersen' }).click()
    expect(await small(72, '.pad button')).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(viewport.width)
  })

  it('the station can be used with the keyboard alone, and shows the focus', async () => {
    await open(`/station?device=${STATION}`, 'dark')
    // The result of the test before is still there.
    await page.keyboard.press('Escape')
    const seen: string[] = []
    for (let i = 0; i < 6; i++) {
      await page.keyboard.press('Tab')
      seen.push(String(await page.evaluate('document.activeElement.textContent || document.activeElement.id')))
      const ring = await page.evaluate('Number.parseFloat(getComputedStyle(document.activeElement).outlineWidth)')
      expect(ring).toBeGreaterThanOrEqual(3)
    }
    expect(seen).toEqual(['code', 'Prüfen', 'Anmelden', 'Ton: an', 'Vollbild', 'English'])
    for (let i = 0; i < 3; i++) await page.keyboard.press('Shift+Tab')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Frau Petersen' }).waitFor()
    await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe('Frau Petersen')
    await page.keyboard.press('Enter')
    await expect.poll(() => page.evaluate('document.activeElement.getAttribute("aria-label")')).toBe('PIN')
    await page.keyboard.press('Escape')
    await page.locator('dialog').waitFor({ state: 'hidden' })
  })

  it('nothing is animated if the user prefers reduced motion', async () => {
    await open(`/gate?device=${GATE}`, 'dark')
    await page.emulateMedia({ reducedMotion: 'reduce' })
    await happens('alarm', UNPAID)
    expect(await page.evaluate('document.getAnimations().length')).toBe(0)
  })
})
